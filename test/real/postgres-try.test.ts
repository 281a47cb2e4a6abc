import { createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { eventually, startApp, type TestApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { startTripwireProxy, type TripwireProxy } from '../support/tripwire-proxy.ts'
import { createLogin, openUpstreamDatabase, type UpstreamDatabase } from '../support/upstream-database.ts'

let app: TestApp
let upstream: UpstreamDatabase
let proxy: TripwireProxy
let count = 0

beforeAll(async () => {
  upstream = await openUpstreamDatabase()
  await upstream.root.query('CREATE TABLE fruit (name text)')
  proxy = await startTripwireProxy(upstream.server)
  app = await startApp({ jobs: true, argv: { upstreamTimeout: '2s' } })
})
afterEach(() => proxy.release())
afterAll(async () => {
  await app.close()
  await proxy.close()
  await upstream.close()
})

async function add(config: Record<string, unknown>, query = ''): Promise<string> {
  count += 1
  const body = { type: 'postgres', name: `db-${count}`, config: { ...upstream.config(), ...config } }
  const { status, text } = await app.admin('POST', `/v1/admin/backends${query}`, body)
  expect([status, text]).toEqual([200, expect.anything()])
  return body.name
}
const tryIt = (name: string, body?: unknown) => app.admin('POST', `/v1/admin/backends/${name}/try`, body)
const roleOf = (id: string) => `mf_${id.slice('cred_'.length)}`
const hasRole = async (id: string) =>
  (await upstream.root.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [roleOf(id)])).rowCount === 1
const ok = (name: string) => ({ name, ms: expect.any(Number) })
const throughProxy = () => ({ port: proxy.port, connect_port: proxy.port })

describe('trying a backend of the kind postgres', () => {
  test('makes a role and drops it again, and the role is what its first example says', async () => {
    const name = await add({})
    const { status, body } = await tryIt(name)
    expect([status, body]).toEqual([
      200,
      {
        name,
        scopes: [`${upstream.database.name}:read`],
        steps: [ok('check'), ok('issue'), ok('revoke')],
        id: expect.any(String),
        expires_at: expect.any(String),
        ended: true,
        warnings: expect.anything(),
      },
    ])
    expect(await hasRole(body.id)).toBe(false)
    const entries = await app.admin('GET', `/v1/admin/audit?credential=${body.id}`)
    expect(entries.body.map((one: { action: string }) => one.action).toReversed()).toEqual([
      'credential.requested',
      'credential.issued',
      'credential.revoked',
      'credential.settled',
      'backend.tried',
    ])
    const { body: shown } = await app.admin('GET', `/v1/admin/backends/${name}`)
    expect(shown).toMatchObject({ health: { state: 'up' } })
    expect(shown.unended).toBeUndefined()
  })

  test('names the exact grant that is missing: to the local host, with the code to everybody', async () => {
    const login = await createLogin(upstream)
    await upstream.root.query(`ALTER ROLE ${login.username} NOSUPERUSER`)
    const { username, password } = login
    const name = await add({ username, password }, '?check=false')
    const grant = `ALTER ROLE "?${username}"? CREATEROLE`
    const { body } = await tryIt(name)
    expect(body).toMatchObject({
      steps: [{ name: 'check', error: 'permission_missing', detail: expect.stringMatching(grant) }],
      ended: true,
    })
    expect(body.id).toBeUndefined()
    const some = await app.newAgent({ scopes: ['admin:backends:write'] })
    const told = await some.client.post(`/v1/admin/backends/${name}/try`)
    expect(told.body.steps).toEqual([{ ...ok('check'), error: 'permission_missing' }])
    const refused = await app.admin('POST', '/v1/admin/backends', {
      type: 'postgres',
      name: 'other',
      config: { ...upstream.config(), username, password },
    })
    expect(refused.body.error).toMatchObject({
      code: 'invalid_request',
      reason: 'permission_missing',
      message: expect.stringMatching(`^The backend was not stored: .*Run: ${grant}`),
    })
    await login.drop()
  })

  test('is answered where nothing listens, and where the upstream never says a word', async () => {
    const gone = await add({ port: await freePort() }, '?check=false')
    expect((await tryIt(gone)).body.steps).toMatchObject([{ name: 'check', error: 'refused' }])
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const mute = await add({ port }, '?check=false')
    expect((await tryIt(mute)).body.steps).toMatchObject([{ name: 'check', error: 'timeout' }])
    for (const socket of sockets) socket.destroy()
    silent.close()
  })

  test('ends the role whose making was not answered', async () => {
    const name = await add(throughProxy())
    // The check makes a role, too, and rolls it back.
    proxy.arm({ at: 'answered', sees: ['CREATE ROLE %I LOGIN', 'COMMIT'] }, () => undefined)
    const { body } = await tryIt(name)
    expect(body.steps).toEqual([
      ok('check'),
      { ...ok('issue'), error: 'timeout', detail: expect.any(String) },
    ])
    expect(body).toMatchObject({ ended: false, note: expect.stringContaining('goes on trying') })
    await eventually(async () => expect(await hasRole(body.id)).toBe(false))
    await eventually(async () => {
      const { body: entries } = await app.admin('GET', `/v1/admin/audit?credential=${body.id}`)
      expect(entries[0]).toMatchObject({ action: 'credential.settled', agent_id: 'local' })
    })
  })

  test('says that the upstream did not end it, and goes on', async () => {
    const name = await add(throughProxy())
    proxy.arm({ at: 'answered', sees: ['CREATE ROLE %I LOGIN', 'COMMIT'] }, () => {
      proxy.release()
      proxy.arm({ at: 'arrival', sees: ['NOLOGIN'] }, () => undefined)
    })
    const { body } = await tryIt(name)
    expect(body.steps).toEqual([
      ok('check'),
      ok('issue'),
      { ...ok('revoke'), error: 'timeout', detail: expect.any(String) },
    ])
    expect(body).toMatchObject({ ended: false, note: expect.stringContaining('The server goes on trying') })
    await eventually(async () => expect(await hasRole(body.id)).toBe(false))
    await eventually(async () => {
      const { body: entries } = await app.admin('GET', `/v1/admin/audit?credential=${body.id}`)
      expect(entries[0]).toMatchObject({ action: 'credential.settled', agent_id: 'local' })
    })
  })
})
