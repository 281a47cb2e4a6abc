import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CrashPoint } from '../support/crash-at-commit.ts'
import { type Left, type Point, SAMPLE, TABLES, WITH_ROLE } from '../support/crash-points.ts'
import {
  addAgent,
  addBackends,
  addPostgresPlugin,
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
  untilSettled,
  type World,
} from '../support/fault-world.ts'
import { LONG } from '../support/long.ts'
import { NoAnswer, poll, type Reply, type ServerProcess } from '../support/server-process.ts'
import { startTripwireProxy, type TripwireProxy } from '../support/tripwire-proxy.ts'

const PRELOAD = fileURLToPath(new URL('../support/crash-at-commit.ts', import.meta.url))
const KILLED = { code: null, signal: 'SIGKILL' }

interface Case {
  readonly what: string
  readonly agentId: string
  readonly left: Left
  readonly issued?: Issued
  /** Repeats the request that got no reply. */
  readonly retry?: () => Promise<Reply<Issued>>
  /** The reply to that retry. */
  retried?: Issued
}

/** Inside the process the point matches statements; the kill itself happens at COMMIT. */
function inTransaction(point: CrashPoint): CrashPoint {
  return { ...point, sees: point.sees.filter((word) => word !== 'COMMIT') }
}

let upstream: Upstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(async () => {
  for (const world of worlds) await world.close()
  await upstream.close()
})
const worlds: World[] = []

describe.each([
  ['sqlite', 'postgres'],
  ['postgres', 'postgres'],
  ['sqlite', 'postgres-plugin'],
] as const)('named crash points, %s as the store, the upstream by the kind %s', (dialect, kind) => {
  let world: World
  let upstreamProxy: TripwireProxy
  let storeProxy: TripwireProxy
  let control: string
  const cases: Case[] = []
  const isReply = (point: Point) => 'process' in point && point.process.at === 'reply'
  const fits = (point: Point) =>
    'upstream' in point || (dialect === 'sqlite' ? 'process' in point : 'store' in point)
  const isPlugin = kind === 'postgres-plugin'
  const sample = SAMPLE[isPlugin ? 'plugin' : dialect]
  const usable = (of: keyof typeof TABLES) =>
    TABLES[of].flatMap(([what, choice, left]) => {
      const point = choice.find(fits) ?? choice.find(isReply)
      return point === undefined || !(LONG || sample[of].includes(what)) ? [] : [{ what, point, left }]
    })

  beforeAll(async () => {
    upstreamProxy = await startTripwireProxy(upstream.server)
    storeProxy = await startTripwireProxy(upstream.server)
    const url = dialect === 'postgres' ? (await upstream.server.createDatabase()).url : undefined
    const through = url?.replace(`:${upstream.server.port}/`, `:${storeProxy.port}/`)
    world = await openWorld(
      { preload: [PRELOAD], ...(through === undefined ? {} : { databaseUrl: through }) },
      url,
    )
    worlds.push(world)
    control = join(world.dataDir, 'crash-control')
    const server = await restart()
    if (isPlugin) await addPostgresPlugin(world)
    await addBackends(server, upstream.config(upstreamProxy.port), kind)
  })
  afterAll(async () => {
    await world.server().kill()
    await upstreamProxy.close()
    await storeProxy.close()
  })

  async function restart(): Promise<ServerProcess> {
    rmSync(control, { force: true })
    return world.start({ env: { CRASH_CONTROL: control } })
  }

  function arm(of: Point, server: ServerProcess, id = ''): void {
    const point: Point = JSON.parse(
      JSON.stringify(of).replaceAll('{id}', id).replaceAll('{role}', roleOf(id)),
    )
    const kill = () => void server.kill()
    if ('upstream' in point) upstreamProxy.arm(point.upstream, kill)
    else if ('store' in point) storeProxy.arm(point.store, kill)
    else writeFileSync(control, JSON.stringify(inTransaction(point.process)))
  }

  /** Sends a request, expects the server to die at the point without a reply, looks at what it left, and restarts it. */
  async function crash(
    point: Point,
    ask: (server: ServerProcess) => Promise<unknown>,
    { id, look }: { id?: string; look?: () => Promise<void> } = {},
  ): Promise<void> {
    const server = world.server()
    arm(point, server, id)
    await expect(ask(server)).rejects.toThrow(NoAnswer)
    expect(await server.ended).toEqual(KILLED)
    await look?.()
    await restart()
  }

  test.each(usable('issuing'))('issuing: $what', async ({ what, point, left }) => {
    const key = what.replaceAll(' ', '-')
    const agent = await addAgent(world.server(), `issuing.${key}`)
    const body = { backend: 'db', ttl: '1h' }
    const ask = () =>
      world
        .server()
        .call<Issued>(agent.token, 'POST', '/api/v1/credentials', body, { 'idempotency-key': key })
    cases.push({ what: `issuing, ${what}`, agentId: agent.id, left, retry: ask })
    const look = async () => {
      const rows = await world.rows<StoredCredential>(CREDENTIALS)
      const own = rows.filter((row) => row.agent_id === agent.id).map((row) => roleOf(row.id))
      const roles = await upstream.roles()
      expect(own.map((role) => roles.includes(role))).toEqual(left === 'nothing' ? [] : [WITH_ROLE.has(what)])
    }
    await crash(point, ask, { look })
    expect(await world.server().call(undefined, 'GET', '/readyz')).toMatchObject({ status: 200 })
    // A new request succeeds: the crash left no lock and no half-done change.
    await must(world.server(), agent.token, 'POST', '/api/v1/credentials', { backend: 'tok' })
  })

  test.each(usable('issuing').filter(({ what }) => WITH_ROLE.has(what)))(
    'issuing for a run that nobody beats for any more: $what, and the role is gone with the run',
    { timeout: 120_000 },
    async ({ what, point }) => {
      const { token, id: agentId } = await addAgent(world.server(), `run.${what.replaceAll(' ', '-')}`)
      const { id: run } = await must<{ id: string }>(world.server(), token, 'POST', '/v1/runs', {
        heartbeat: '1s',
      })
      const own = async () =>
        (await world.rows<StoredCredential>(CREDENTIALS)).filter((row) => row.agent_id === agentId)
      const areThere = async () => {
        const roles = await upstream.roles()
        return (await own()).map((row) => roles.includes(roleOf(row.id)))
      }
      const body = { backend: 'db', ttl: '1h', run }
      const look = async () => expect(await areThere()).toEqual([true])
      await crash(point, (server) => server.call(token, 'POST', '/api/v1/credentials', body), { look })
      await poll('the end of the run and of its role', async () => {
        const { state } = await must<{ state: string }>(
          world.server(),
          undefined,
          'GET',
          `/v1/admin/runs/${run}`,
        )
        return state === 'ended' && !(await areThere())[0] ? true : undefined
      })
      await untilSettled(world)
      expect((await own()).map(({ state }) => state)).toEqual(['revoked'])
      expect(await areThere()).toEqual([false])
    },
  )

  test.each(usable('revoking'))('revoking: $what', async ({ what, point, left }) => {
    const agent = await addAgent(world.server(), `revoking.${what.replaceAll(' ', '-')}`)
    const issued = await issue(world.server(), agent.token)
    cases.push({ what: `revoking, ${what}`, agentId: agent.id, left, issued })
    const path = `/api/v1/credentials/${issued.id}`
    await crash(point, (server) => server.call(agent.token, 'DELETE', path), { id: issued.id })
    const record = await must(world.server(), agent.token, 'GET', `/api/v1/credentials/${issued.id}`)
    expect(record['status']).toBe(left === 'active' ? 'active' : 'revoked')
  })

  test.each(usable('deleting'))('deleting an agent: $what', async ({ what, point, left }) => {
    const name = `deleting.${what.replaceAll(' ', '-')}`
    const agent = await addAgent(world.server(), name)
    const issued = await issue(world.server(), agent.token)
    cases.push({ what: `deleting, ${what}`, agentId: agent.id, left, issued })
    await crash(point, (server) => server.call(undefined, 'DELETE', `/v1/admin/agents/${name}`))
    const status = await world.server().call(agent.token, 'GET', '/v1/status')
    expect(status.status).toBe(left === 'active' ? 200 : 401)
  })

  test.each(usable('expiring'))('expiring: $what', async ({ what, point, left }) => {
    const server = world.server()
    const agent = await addAgent(server, `expiring.${what.replaceAll(' ', '-')}`)
    const issued = await issue(server, agent.token, { ttl: '1s' })
    cases.push({ what: `expiring, ${what}`, agentId: agent.id, left, issued })
    arm(point, server, issued.id)
    expect(await server.ended).toEqual(KILLED)
    await restart()
  })

  test('a retry with the same Idempotency-Key succeeds after each crash', { timeout: 180_000 }, async () => {
    for (const one of cases) {
      const { what, retry } = one
      if (retry === undefined) continue
      // While the server undoes the first attempt, it answers 409.
      one.retried = await poll(`a reply to the retry (${what})`, async () => {
        const reply = await retry()
        if (reply.status === 409) return undefined
        expect(reply.status, what).toBe(201)
        return reply.body
      })
      expect(one.retried.token, what).toBeTypeOf('string')
      await logIn(one.retried)
    }
  })

  // Runs last, because its failed revocations may leave the circuit breaker open.
  if (LONG || (dialect === 'sqlite' && !isPlugin))
    test('issuing: the upstream receives the COMMIT long after the restart', async () => {
      const agent = await addAgent(world.server(), 'issuing.late')
      cases.push({ what: 'issuing, late', agentId: agent.id, left: 'interrupted' })
      const point: Point = { upstream: { at: 'delayed', sees: [CREATES_ROLE, 'COMMIT'] } }
      await crash(point, (server) => issue(server, agent.token))
      const path = '/v1/admin/audit?agent=issuing.late'
      // Revoking fails, unless the restart took so long that PostgreSQL ended the idle transaction first.
      await poll('a failed or settled revocation', async () => {
        const entries = await must<{ action: string }[]>(world.server(), undefined, 'GET', path)
        return entries.some(({ action }) => /^credential\.(revoke_failed|settled)$/.test(action))
      })
      upstreamProxy.release()
    })

  test('no crash point leaves an unrecorded upstream account', { timeout: 240_000 }, async () => {
    const server = world.server()
    await untilSettled(world)
    for (const { issued, left } of cases) if (issued !== undefined && left === 'active') await logIn(issued)
    expect(await server.terminate()).toEqual({ code: 0, signal: null })
    const rows = (await world.rows<StoredCredential>(CREDENTIALS)).filter((row) => row.backend === 'db')
    const entries = await world.rows<{ action: string; credential_id: string }>(
      'SELECT action, credential_id FROM audit WHERE credential_id IS NOT NULL ORDER BY id',
    )
    for (const one of cases) {
      // The retry returns the credential of an attempt that succeeded, and otherwise issues a new one.
      const reissued = one.left === 'active' ? undefined : one.retried?.id
      const own = rows.filter((row) => row.agent_id === one.agentId && row.id !== reissued)
      expect(own.length, one.what).toBe(one.left === 'nothing' ? 0 : 1)
      for (const row of own) checkLeft(one, row, entries)
    }
    expect(rows.filter((row) => row.state === 'pending' || row.state === 'revoking')).toEqual([])
  })

  function checkLeft(
    one: Case,
    row: StoredCredential,
    entries: readonly { action: string; credential_id: string }[],
  ): void {
    const actions = entries.filter((entry) => entry.credential_id === row.id).map((entry) => entry.action)
    const kinds = { issued: 0, ended: 0, settled: 0 }
    for (const action of actions) {
      if (action === 'credential.issued') kinds.issued += 1
      if (action === 'credential.revoked' || action === 'credential.expired') kinds.ended += 1
      if (action === 'credential.settled') kinds.settled += 1
    }
    const ended = one.left !== 'active'
    expect(row.state === 'active', one.what).toBe(!ended)
    expect(kinds, `${one.what}: ${actions}`).toEqual({
      issued: one.left === 'interrupted' ? 0 : 1,
      ended: ended ? 1 : 0,
      settled: ended ? 1 : 0,
    })
    if (one.left === 'interrupted') expect(row.end_reason).toBe('interrupted')
  }
})

test('the upstream has exactly the recorded accounts', async () => {
  const rows = (await Promise.all(worlds.map((world) => world.rows<StoredCredential>(CREDENTIALS)))).flat()
  const active = rows.filter((row) => row.backend === 'db' && row.state === 'active')
  expect(await upstream.roles()).toEqual(active.map((row) => roleOf(row.id)).sort())
})
