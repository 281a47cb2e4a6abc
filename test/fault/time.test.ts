import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  addAgent,
  addBackends,
  CREATES_ROLE,
  CREDENTIALS,
  type Issued,
  issue,
  logIn,
  must,
  openWorld,
  roleOf,
  type StoredCredential,
  startUpstream,
  type Upstream,
  type World,
} from '../support/fault-world.ts'
import { poll } from '../support/server-process.ts'
import { startTripwireProxy, type TripwireProxy } from '../support/tripwire-proxy.ts'

let upstream: Upstream
let proxy: TripwireProxy
let world: World

beforeAll(async () => {
  upstream = await startUpstream()
  proxy = await startTripwireProxy(upstream.server)
})
afterAll(async () => {
  await proxy.close()
  await upstream.close()
})
afterEach(() => world.close())

describe('after kill -9 and a restart', () => {
  test('an issued credential is still known, still works, and ends on time', async () => {
    world = await openWorld()
    const first = await world.start()
    await addBackends(first, upstream.config())
    const agent = await addAgent(first, 'agent')
    const ttl = '8s'
    const [db, tok] = await Promise.all([
      issue(first, agent.token, { ttl }),
      issue(first, agent.token, { ttl, backend: 'tok' }),
    ])
    await first.kill()
    const server = await world.start()
    const restarted = Date.now()
    const record = (id: string) => must(server, agent.token, 'GET', `/api/v1/credentials/${id}`)
    expect(await record(db.id)).toMatchObject({ id: db.id, expires_at: db.expires_at })
    if (Date.now() < Date.parse(db.expires_at) - 2_000) {
      expect(await record(db.id)).toMatchObject({ status: 'active' })
      await logIn(db)
    }
    await poll('the role is gone', async () => !(await upstream.roles()).includes(roleOf(db.id)))
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(db.expires_at) - 50)
    await expect(logIn(db)).rejects.toThrow()
    for (const one of [db, tok]) {
      expect(await record(one.id)).toMatchObject({ status: 'expired', revoked: false })
      const path = `/v1/admin/audit?credential=${one.id}&action=credential.expired`
      const [entry] = await poll('an audit entry', async () => {
        const entries = await must<{ timestamp: string }[]>(server, undefined, 'GET', path)
        return entries.length > 0 && entries
      })
      const at = Date.parse(entry?.timestamp ?? '')
      expect(at).toBeGreaterThanOrEqual(Date.parse(one.expires_at))
      // The sweeper runs twice a second; the rest is slack for a slow machine.
      expect(at - Math.max(Date.parse(one.expires_at), restarted)).toBeLessThan(20_000)
    }
  })

  test('a credential that expired while the server was down ends at the start', async () => {
    world = await openWorld()
    const first = await world.start()
    await addBackends(first, upstream.config())
    const agent = await addAgent(first, 'agent')
    const issued = await issue(first, agent.token, { ttl: '3s' })
    await first.kill()
    await poll('the credential has expired', () => Date.now() > Date.parse(issued.expires_at))
    // Meanwhile the upstream enforces its own expiry.
    await expect(logIn(issued)).rejects.toThrow()
    expect(await upstream.roles()).toContain(roleOf(issued.id))
    const server = await world.start()
    const path = `/api/v1/credentials/${issued.id}`
    expect(await must(server, agent.token, 'GET', path)).toMatchObject({ status: 'expired' })
    await poll('the role is gone', async () => !(await upstream.roles()).includes(roleOf(issued.id)))
  })
})

describe('SIGTERM', () => {
  test('completes the requests in progress and leaves nothing pending', async () => {
    world = await openWorld({ flags: ['--upstream-timeout', '20s'] })
    const server = await world.start()
    await addBackends(server, upstream.config(proxy.port))
    const agent = await addAgent(server, 'agent')
    const issued = await issue(server, agent.token)
    const reached = Promise.withResolvers<void>()
    proxy.arm({ at: 'delayed', sees: [CREATES_ROLE] }, reached.resolve)
    const slow = Array.from({ length: 3 }, () => issue(server, agent.token))
    await reached.promise
    const ending = server.terminate()
    await poll('the server refuses connections', () =>
      server.call(undefined, 'GET', '/health').then(
        () => false,
        () => true,
      ),
    )
    expect(server.hasEnded()).toBe(false)
    proxy.release()
    const done = await Promise.all(slow)
    expect(await ending).toEqual({ code: 0, signal: null })
    for (const one of [issued, ...done]) await logIn(one)
    const rows = await world.rows<StoredCredential>(CREDENTIALS)
    expect(rows.map((row) => row.state)).toEqual(['active', 'active', 'active', 'active'])
    const held = await upstream.roles()
    for (const one of [issued, ...done]) expect(held).toContain(roleOf(one.id))
  })

  test('undoes a hanging upstream call after its deadline', async () => {
    world = await openWorld()
    const server = await world.start()
    await addBackends(server, upstream.config(proxy.port))
    const agent = await addAgent(server, 'agent')
    const reached = Promise.withResolvers<void>()
    proxy.arm({ at: 'arrival', sees: [CREATES_ROLE] }, reached.resolve)
    const hanging = server.call<Issued>(agent.token, 'POST', '/api/v1/credentials', { backend: 'db' })
    await reached.promise
    const ending = server.terminate()
    expect((await hanging).status).toBe(504)
    expect(await ending).toEqual({ code: 0, signal: null })
    const [row] = await world.rows<StoredCredential>(CREDENTIALS)
    // The outcome is unknown, so the next process checks the upstream.
    expect(row).toMatchObject({ state: 'revoking', end_reason: 'interrupted' })
    await world.start()
    await poll('the credential is settled', async () => {
      const path = `/v1/admin/audit?credential=${row?.id}&action=credential.settled`
      return (await must<unknown[]>(world.server(), undefined, 'GET', path)).length === 1
    })
    expect(await upstream.roles()).not.toContain(roleOf(row?.id ?? ''))
  })
})
