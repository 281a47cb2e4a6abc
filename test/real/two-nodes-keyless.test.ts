import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/identity-tokens.ts'
import { exchange, ISSUER, type Recorded, signer } from '../support/keyless.ts'
import { newMasterKey } from '../support/master-key.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { poll, type ServerProcess, startServerProcess } from '../support/server-process.ts'

const HOUR_MS = 3_600_000
/** What the issue promises, from the moment at which the last node no longer has the entry. */
const ENDED_WITHIN_MS = 60_000

let postgres: TestPostgres
let database: TestDatabase
let sql: pg.Client
let folder: string

type Node = 'a' | 'b'
const running = new Map<Node, ServerProcess>()
const at = (node: Node): ServerProcess => {
  const server = running.get(node)
  if (server === undefined) throw new Error(`node ${node} has not started`)
  return server
}

/** Each entry takes the tokens of its own audience. */
const entryOf = (name: string) => ({
  name,
  issuer: ISSUER,
  audience: name,
  subject: 'job',
  agent: `${name}-{run_id}`,
  scopes: ['orders'],
  jwks: { keys: [signer.jwk] },
})

/** JSON is YAML. */
const configure = (node: Node, names: readonly string[]) =>
  writeFile(
    join(folder, `${node}.yaml`),
    JSON.stringify({
      issuer: 'https://mayfly.test',
      master_key_file: join(folder, 'master.key'),
      identities: names.map(entryOf),
    }),
  )

async function start(node: Node): Promise<void> {
  const server = await startServerProcess({
    dataDir: join(folder, node),
    databaseUrl: database.url,
    flags: ['--config', join(folder, `${node}.yaml`)],
  })
  running.set(node, server)
}

async function reload(node: Node, names: readonly string[]): Promise<void> {
  await configure(node, names)
  const reply = await at(node).call<{ changed: string[] }>(undefined, 'POST', '/v1/admin/reload')
  expect(reply.body.changed).toEqual(['identities'])
}

const sign = (audience: string, runId: string) =>
  signer.sign({
    iss: ISSUER,
    aud: audience,
    sub: 'job',
    jti: randomUUID(),
    run_id: runId,
    ...times(Date.now()),
  })

const logIn = (node: Node, token: string) => exchange({ url: at(node).address }, token)

/** A job that has logged in at this node, and holds a credential. */
async function newJob(node: Node, name: string) {
  const { status, body } = await logIn(node, sign(name, '1'))
  expect(status).toBe(200)
  const issued = await at(node).call<{ id: string }>(body.access_token, 'POST', '/v1/credentials/orders')
  expect(issued.status).toBe(200)
  return { agent: `${name}-1`, token: body.access_token, credential: issued.body.id }
}
type Job = Awaited<ReturnType<typeof newJob>>

/** How a node answers this job, and what an administrator sees of it there. */
async function seenAt(node: Node, { agent, token, credential }: Job) {
  const call = <T>(by: string | undefined, path: string) => at(node).call<T>(by, 'GET', path)
  const { body } = await call<{ status: string }>(undefined, `/api/v1/credentials/${credential}`)
  return {
    agent: (await call(undefined, `/v1/admin/agents/${agent}`)).status,
    token: (await call(token, '/v1/status')).status,
    credential: body.status,
  }
}
const LIVES = { agent: 200, token: 200, credential: 'active' }
const ENDED = { agent: 404, token: 401, credential: 'revoked' }

const audit = async (node: Node, query: string) =>
  (await at(node).call<Recorded[]>(undefined, 'GET', `/v1/admin/audit?${query}`)).body

/** When some node last said that it has the entry. */
const saidAt = async (name: string): Promise<number> =>
  Number(
    (await sql.query('SELECT trusted_at FROM trusts WHERE entry = $1', [`identity:${name}`])).rows[0]
      ?.trusted_at,
  )

beforeAll(async () => {
  postgres = await startPostgres()
  database = await postgres.createDatabase()
  sql = new pg.Client({ connectionString: database.url })
  await sql.connect()
  folder = await mkdtemp(join(tmpdir(), 'mayfly-keyless-nodes-'))
  await writeFile(join(folder, 'master.key'), newMasterKey(), { mode: 0o400 })
  for (const node of ['a', 'b'] as const) {
    await configure(node, ['gone', 'half', 'kept'])
    await start(node)
  }
  const backend = { type: 'jwt', name: 'orders', config: { audience: 'x' } }
  expect((await at('a').call(undefined, 'POST', '/v1/admin/backends', backend)).status).toBe(200)
})
afterAll(async () => {
  for (const server of running.values()) if (!server.hasEnded()) await server.terminate()
  await sql.end()
  await database.drop()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

test('a token that was used at one node is refused by the other', async () => {
  const token = sign('kept', 'once')
  expect((await logIn('a', token)).status).toBe(200)
  expect(await logIn('b', token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  const [refusal] = await audit('b', 'action=token.refused&limit=1')
  expect(refusal?.details).toMatchObject({ reason: 'repeated', entries: ['kept'] })
  expect((await logIn('b', sign('kept', 'once'))).status).toBe(200)
})

// It waits half a minute, and needs next to no CPU meanwhile.
test('an entry that both nodes have lost ends its agents, and only its; a restart of both ends none', async () => {
  const jobs = {
    gone: await newJob('a', 'gone'),
    half: await newJob('b', 'half'),
    kept: await newJob('a', 'kept'),
  }
  for (const server of running.values()) expect((await server.terminate()).code).toBe(0)
  // As after an hour in which both were down. The first node that comes back has `kept` and `gone`, not `half`.
  await sql.query('UPDATE trusts SET trusted_at = trusted_at - $1', [HOUR_MS])
  const before = await saidAt('kept')
  await configure('a', ['gone', 'kept'])
  await start('a')
  await poll('the first look of node a', async () => (await saidAt('kept')) > before)
  await start('b')
  for (const job of Object.values(jobs)) expect(await seenAt('a', job)).toEqual(LIVES)

  await reload('a', ['kept'])
  await reload('b', ['half', 'kept'])
  const lost = performance.now()
  await poll('the end of its agent', async () => (await seenAt('a', jobs.gone)).agent === 404, {
    everyMs: 500,
  })
  expect(performance.now() - lost).toBeLessThan(ENDED_WITHIN_MS)
  for (const node of ['a', 'b'] as const) {
    expect(await seenAt(node, jobs.gone)).toEqual(ENDED)
    expect(await seenAt(node, jobs.half)).toEqual(LIVES)
    expect(await seenAt(node, jobs.kept)).toEqual(LIVES)
  }
  const ends = await audit('b', 'action=agent.deleted&limit=10')
  expect(ends.map((end) => [end.agent_name, end.actor, end.details])).toEqual([
    [jobs.gone.agent, 'system', expect.objectContaining({ reason: 'untrusted' })],
  ])
  expect((await logIn('b', sign('gone', '2'))).body.error).toBe('invalid_grant')
})
