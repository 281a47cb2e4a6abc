import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  activeAgentIds,
  checkAcknowledged,
  checkAudit,
  checkLogins,
  lastShortExpiry,
} from '../support/acknowledged-checks.ts'
import {
  addAgent,
  addBackends,
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
  untilSettled,
  type World,
} from '../support/fault-world.ts'
import { newAcknowledgedState, runLoad } from '../support/kill-load.ts'
import { LONG } from '../support/long.ts'
import { poll, type ServerProcess } from '../support/server-process.ts'

const RESTARTS = LONG ? 20 : 1
const LONG_MS = 60 * 60_000

/** The test stops `failing`; `healthy` keeps running. */
let failing: Upstream
let healthy: Upstream
let world: World

beforeAll(async () => {
  failing = await startUpstream()
  healthy = await startUpstream()
})
afterAll(async () => {
  await failing.close()
  await healthy.close()
})
afterEach(() => world.close())

const isReady = async (server: ServerProcess) =>
  (await server.call(undefined, 'GET', '/readyz')).status === 200
const codeOf = (reply: { body: unknown }) => (reply.body as { error: { code: string } }).error.code

test('survives restarts of the store under load without losing a change', { timeout: LONG_MS }, async () => {
  const database = await failing.server.createDatabase()
  world = await openWorld({ databaseUrl: database.url })
  const server = await world.start()
  await addBackends(server, healthy.config())
  const agent = await addAgent(server, 'agent')
  const first = await issue(server, agent.token)
  const state = newAcknowledgedState()
  let stopping = false
  const load = runLoad(server, state, () => stopping)
  const moreAcknowledged = async (count: number) => {
    const enough = state.acknowledged + count
    await poll('acknowledgements', () => server.hasEnded() || state.acknowledged >= enough, { everyMs: 5 })
  }
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    await moreAcknowledged(20 + Math.floor(Math.random() * 20))
    await failing.server.halt()
    if (restart === 0) {
      await poll('the server is not ready', async () => !(await isReady(server)))
      expect((await server.call(undefined, 'GET', '/health')).status).toBe(200)
      await expectUnavailable(server, agent.token, first.id)
    }
    await failing.server.resume()
    await poll('the server is ready', () => isReady(server))
  }
  await moreAcknowledged(30)
  stopping = true
  await load
  expect(server.hasEnded()).toBe(false)
  expect(state.unexpected).toEqual([])
  await issue(server, agent.token)
  await poll('the short-lived credentials have expired', () => Date.now() > lastShortExpiry(state))
  await untilSettled(world)
  const alive = await activeAgentIds(server)
  await checkAcknowledged(server, state, alive)
  expect(await checkLogins(state, alive)).toBeGreaterThan(0)
  expect(await server.terminate()).toEqual({ code: 0, signal: null })
  await checkAudit(world, state, alive)
  const rows = await world.rows<StoredCredential>(CREDENTIALS)
  const held = rows.filter(
    (row) => row.backend === 'db' && !['revoked', 'expired', 'failed'].includes(row.state),
  )
  expect(held.filter((row) => row.state !== 'active')).toEqual([])
  expect(await healthy.roles()).toEqual(held.map((row) => roleOf(row.id)).sort())
  console.log(
    `${RESTARTS} restarts, ${state.acknowledged} acknowledged, ${state.refused} refused, ` +
      `${state.unanswered} unanswered, ${held.length} roles at the end`,
  )
})

async function expectUnavailable(server: ServerProcess, token: string, id: string): Promise<void> {
  const codes = ['store_unavailable', 'audit_unavailable']
  for (const backend of ['db', 'tok']) {
    const issued = await server.call(token, 'POST', '/api/v1/credentials', { backend })
    expect(issued.status).toBe(503)
    expect(codes).toContain(codeOf(issued))
  }
  for (const method of ['GET', 'DELETE']) {
    const reply = await server.call(token, method, `/api/v1/credentials/${id}`)
    expect(reply.status).toBe(503)
    expect(codes).toContain(codeOf(reply))
  }
}

test('an upstream that is down: fails fast, retries, and does not delay other backends', {
  timeout: 240_000,
}, async () => {
  const leftBefore = await healthy.roles()
  world = await openWorld()
  const server = await world.start()
  await addBackends(server, failing.config())
  const other = { type: 'postgres', name: 'other', config: healthy.config() }
  await must(server, undefined, 'POST', '/v1/admin/backends', other)
  const agent = await must<{ token: string }>(server, undefined, 'POST', '/v1/admin/agents', {
    name: 'agent',
    scopes: ['db', 'other', 'tok'],
  })
  const revoked: Issued[] = []
  for (let n = 0; n < 6; n += 1) revoked.push(await issue(server, agent.token))
  const kept = await issue(server, agent.token)
  const expiring = await issue(server, agent.token, { ttl: '5s' })
  await failing.server.halt()

  for (const { id } of revoked) {
    const reply = await server.call(agent.token, 'DELETE', `/api/v1/credentials/${id}`)
    expect(reply).toMatchObject({ status: 200, body: { revoked: true, upstream: 'pending' } })
  }
  const intents = '/v1/admin/audit?action=credential.requested&backend=db&limit=1000'
  const countIntents = async () => (await must<unknown[]>(server, undefined, 'GET', intents)).length
  await poll('the circuit breaker is open', async () => {
    const before = await countIntents()
    const reply = await server.call(agent.token, 'POST', '/api/v1/credentials', { backend: 'db' })
    expect(reply.status).toBe(503)
    expect(codeOf(reply)).toBe('backend_unavailable')
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
    // An open breaker refuses before it records the intent.
    return (await countIntents()) === before
  })

  // Meanwhile the server issues from the other backends and sweeps them.
  for (let n = 0; n < 3; n += 1) {
    const passing = await issue(server, agent.token, { backend: 'other', ttl: '1s' })
    const local = await issue(server, agent.token, { backend: 'tok', ttl: '1s' })
    for (const { id } of [passing, local]) {
      const path = `/v1/admin/audit?credential=${id}&action=credential.expired`
      await poll('the credential has expired', async () => {
        return (await must<unknown[]>(server, undefined, 'GET', path)).length === 1
      })
    }
    await poll(
      'the other upstream is swept',
      async () => !(await healthy.roles()).includes(roleOf(passing.id)),
    )
  }
  const lasting = await issue(server, agent.token, { backend: 'other' })
  await logIn(lasting)

  await failing.server.resume()
  await untilSettled(world)
  const reissued = await poll('the backend issues again', async () => {
    const reply = await server.call<Issued>(agent.token, 'POST', '/api/v1/credentials', { backend: 'db' })
    return reply.status === 201 && reply.body
  })
  for (const one of [kept, reissued]) await logIn(one)
  await expect(logIn(expiring)).rejects.toThrow()
  expect(await failing.roles()).toEqual([kept, reissued].map(({ id }) => roleOf(id)).sort())
  expect(await healthy.roles()).toEqual([...leftBefore, roleOf(lasting.id)].sort())
  expect(await server.terminate()).toEqual({ code: 0, signal: null })
})
