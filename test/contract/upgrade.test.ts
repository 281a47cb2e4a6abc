import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { SCHEMA_VERSION } from '../../src/store/schema/migrate.ts'
import { newHome, runCli } from '../cli/support.ts'
import { freePort, startApp, type TestApp } from '../support/app.ts'
import { makeOldStore, type OldAgent } from '../support/old-store.ts'
import { startPostgres } from '../support/postgres.ts'
import { DIALECTS } from '../support/store.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})
const temporary = async (): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-upgrade-'))
  ends.push(() => rm(directory, { recursive: true, force: true }))
  return directory
}

async function emptyDatabase(): Promise<string> {
  const server = await startPostgres()
  const database = await server.createDatabase()
  ends.push(async () => {
    await database.drop()
    await server.stop()
  })
  return database.url
}

/** Today's server on a store that an older version left, whose default issuer was a URL with `localhost`. */
async function upgrade(dialect: (typeof DIALECTS)[number], schema: number) {
  const directory = await temporary()
  const databaseUrl = dialect === 'postgres' ? await emptyDatabase() : undefined
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const agent = await makeOldStore({ directory, databaseUrl, schema, issuer })
  const argv = { dataDir: directory, listen: `127.0.0.1:${port}`, issuer: undefined }
  const app = await startApp({ ...(databaseUrl === undefined ? {} : { databaseUrl }), argv })
  ends.push(() => app.close())
  return { app, agent, issuer }
}

/** The files of the command, as it wrote them at the enrollment. */
async function enrolledHome(agent: OldAgent, server: string, issuer: string) {
  const { home, env } = await newHome()
  ends.push(() => rm(home, { recursive: true, force: true }))
  const kept = join(home, 'config/mayfly')
  await mkdir(join(kept, 'secrets'), { recursive: true, mode: 0o700 })
  const write = (path: string, value: object) =>
    writeFile(join(kept, path), JSON.stringify(value), { mode: 0o600 })
  const client_id = agent.clientId
  const login = 'private_key_jwt'
  const profile = {
    ...{ server, login, secret_in: 'file', issuer, client_id },
    agent: { id: agent.id, name: agent.name },
    server_keys: [agent.serverKey],
  }
  await write('config.json', { current: 'default', profiles: { default: profile } })
  await write('secrets/default.login.json', { kind: login, client_id, private_jwk: agent.privateJwk, server })
  return env
}

async function expectService(app: TestApp, agent: OldAgent, issuer: string) {
  const byToken = app.as(agent.token)
  expect((await byToken.get('/v1/status')).body).toMatchObject({ id: agent.id, scopes: ['demo'] })
  expect((await byToken.post('/v1/credentials/demo')).status).toBe(200)
  const env = await enrolledHome(agent, issuer.replace('localhost', '127.0.0.1'), issuer)
  const run = (...argv: string[]) => runCli(argv, { env })
  expect(await run('get', 'demo')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/) })
  expect(await run('status', '--json')).toMatchObject({ code: 0, stderr: '' })
}

describe.each(DIALECTS)('a %s store of an older version', (dialect) => {
  test.each([3, 2, 1])('%i schemas back serves its enrolled agents', async (back) => {
    const { app, agent, issuer } = await upgrade(dialect, SCHEMA_VERSION - back)
    expect((await app.as(undefined).get('/.well-known/openid-configuration')).body.issuer).toBe(app.url)
    await expectService(app, agent, issuer)
  })
})
