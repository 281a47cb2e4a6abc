import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { openUpstreamDatabase, type UpstreamDatabase } from '../../support/upstream-database.ts'
import { environment, type ProxyWorld, startProxyWorld } from './world.ts'

/** They are renewed every four seconds. */
const TTL = '6s'
const LOOPS = 4
const CREDENTIALS = 4

let world: ProxyWorld
let postgres: UpstreamDatabase
beforeAll(async () => {
  world = await startProxyWorld()
  postgres = await openUpstreamDatabase()
  await world.app.newBackend({ type: 'postgres', name: 'db', config: postgres.config() })
})
afterAll(async () => {
  await world?.close()
  await postgres?.close()
})

/** One request after the other, each of which takes a while to be sent. */
async function keepAsking(url: string, token: string, signal: AbortSignal): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: number[] = []
  while (!signal.aborted) {
    const outgoing = request(url, { agent, method: 'POST', headers: { authorization: `Bearer ${token}` } })
    const answered = once(outgoing, 'response')
    outgoing.write('half')
    await Promise.race([sleep(50), answered])
    outgoing.end('and half')
    const [incoming] = (await answered) as [IncomingMessage]
    statuses.push(incoming.statusCode ?? 0)
    await once(incoming.resume(), 'end')
  }
  agent.destroy()
  return statuses
}

/** A new session every 100 ms. Returns who each was. */
async function keepConnecting(url: string, users: string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const { rows } = await client.query('SELECT current_user AS name')
    users.push(rows[0].name)
    await client.end()
    await sleep(100)
  }
}

/** A session that stays open. */
async function openSession(url: string) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  const ended = new Promise<{ at: number; code: string | undefined }>((resolve) => {
    const { stream } = (client as unknown as { connection: { stream: import('node:net').Socket } }).connection
    let code: string | undefined
    stream.on('error', (error: NodeJS.ErrnoException) => {
      code = error.code
    })
    stream.once('close', () => resolve({ at: Date.now(), code }))
  })
  return { client, ended }
}

async function openStream(url: string, token: string): Promise<{ readonly ended: Promise<number> }> {
  const outgoing = request(url, { agent: false, headers: { authorization: `Bearer ${token}` } }).end()
  outgoing.on('error', () => undefined)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  incoming.resume()
  return { ended: new Promise((resolve) => incoming.once('error', () => resolve(Date.now()))) }
}

const inOrder = (all: readonly string[]) => all.filter((one, at) => one !== all[at - 1])

test('while credentials are renewed, no request and no login fails, and what is open lives until its own expires', {
  timeout: 120_000,
}, async () => {
  const { agent, env } = await newRunner(world, ['gateway:*', 'db'])
  const [config, file] = [join(world.home, 'renewal.yaml'), join(world.home, 'renewal.env')]
  await writeFile(config, `credentials:\n  gateway:\n    ttl: ${TTL}\n  db:\n    ttl: ${TTL}\n`)
  const proxy = spawnCli(['proxy', '--config', config, '--write-env', file], { env, cwd: world.home })
  await proxy.said('ready')
  const values = await environment(file)
  const [url = '', token = '', database = ''] = ['MAYFLY_URL_GATEWAY_API', 'GATEWAY_TOKEN', 'DB_URL'].map(
    (name) => values.get(name) ?? '',
  )
  const session = await openSession(database)
  const stream = await openStream(`${url}/v1/stream`, token)

  const over = new AbortController()
  const loops = Array.from({ length: LOOPS }, (_, n) => n)
  const asking = Promise.all(loops.map((n) => keepAsking(`${url}/v1/x?loop=${n}`, token, over.signal)))
  const users: string[] = []
  const connecting = keepConnecting(database, users, over.signal)
  const secretsOf = (n: number) =>
    world.plain.arrived
      .filter(({ url }) => url === `/v1/x?loop=${n}`)
      .map(({ authorization }) => authorization)
  const used = () => [...loops.map((n) => new Set(secretsOf(n)).size), new Set(users).size]
  await Promise.race([
    expect.poll(() => Math.min(...used()), { timeout: 60_000 }).toBeGreaterThanOrEqual(CREDENTIALS),
    asking,
    connecting,
  ])
  over.abort()
  const statuses = (await asking).flat()
  await connecting

  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(statuses.length).toBeGreaterThan(10 * CREDENTIALS)
  expect(users.length).toBeGreaterThan(2 * CREDENTIALS)
  // The old one, then the new one, and never the old one again.
  for (const all of [...loops.map(secretsOf), users]) {
    expect(inOrder(all)).toEqual([...new Set(all)])
  }
  expect(world.plain.arrived.map(({ authorization }) => authorization).join()).not.toContain(token)

  const { body } = await world.app.admin('GET', `/v1/admin/tokens?agent=${agent.name}`)
  const ofBackend = (name: string) =>
    (body as { id: string; backend: string; expires_at: string }[])
      .filter(({ backend }) => backend === name)
      .sort((one, other) => one.id.localeCompare(other.id))
  const expiryOf = (name: string) => Date.parse(ofBackend(name)[0]?.expires_at ?? '')
  // By the proxy's own clock, which begins before that of the server: at its expiry, and not at the renewal two seconds before.
  for (const [at, expires] of [
    [(await session.ended).at, expiryOf('db')],
    [await stream.ended, expiryOf('gateway')],
  ] as const) {
    expect(at).toBeGreaterThan(expires - 1_500)
    // Nothing else would end the stream.
    expect(at).toBeLessThan(expires + 8_000)
  }
  expect((await session.ended).code).toBe('ECONNRESET')

  // Nobody revoked the old ones: they ended in their own time.
  await expect
    .poll(
      async () => {
        const first = (await recordsOf(world, agent)).slice(0, 2)
        return first.map(({ status, actions }) => [status, actions.includes('credential.revoked')])
      },
      { timeout: 20_000 },
    )
    .toEqual([
      ['expired', false],
      ['expired', false],
    ])
  proxy.child.kill('SIGTERM')
  expect((await proxy.ended).code).toBe(0)
  for (const { status } of await recordsOf(world, agent)) expect(status).not.toBe('active')
})
