import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
  issue,
  openWorld,
  roleOf,
  type StoredCredential,
  startUpstream,
  type Upstream,
  untilSettled,
  type World,
} from '../support/fault-world.ts'
import { type AcknowledgedState, issueLasting, newAcknowledgedState, runLoad } from '../support/kill-load.ts'
import { LONG } from '../support/long.ts'
import { killDuringStart, poll, type ServerProcess } from '../support/server-process.ts'

const ROUNDS = { sqlite: LONG ? 100 : 2, postgres: LONG ? 50 : 1 }
const FIRST_STARTS = LONG ? 50 : 1
const LONG_MS = 60 * 60_000
/** Each round kills the server after a random number of acknowledgements, at most this many. */
const MOST_ACKNOWLEDGED = 80

interface Stage {
  world: World
  state: AcknowledgedState
  kills: number
}

const stages = new Map<'sqlite' | 'postgres', Stage>()
let upstream: Upstream

beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(async () => {
  for (const { world } of stages.values()) await world.close()
  await upstream.close()
})

function stageOf(dialect: 'sqlite' | 'postgres'): Stage {
  const stage = stages.get(dialect)
  if (stage === undefined) throw new Error('the rounds did not run')
  return stage
}

/** Kills the server at a random moment, including during its start, and restarts it on the same store. */
async function rounds({ world, state }: Stage, count: number): Promise<number> {
  let kills = 0
  for (; kills < count; kills += 1) {
    const server = await world.start()
    if (kills === 0) await addBackends(server, upstream.config())
    const enough = state.acknowledged + 1 + Math.floor(Math.random() * MOST_ACKNOWLEDGED)
    const load = runLoad(server, state, () => false)
    await poll('acknowledgements', () => server.hasEnded() || state.acknowledged >= enough, { everyMs: 1 })
    // Move the kill away from the reply that the poll just counted.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
    expect(await server.kill()).toEqual({ code: null, signal: 'SIGKILL' })
    await load
  }
  return kills
}

describe.each(['sqlite', 'postgres'] as const)(
  'kill -9 while the server starts for the first time, %s',
  (dialect) => {
    test(`${FIRST_STARTS} times`, { timeout: LONG_MS }, async () => {
      const databaseUrl = dialect === 'postgres' ? (await upstream.server.createDatabase()).url : undefined
      const world = await openWorld(databaseUrl === undefined ? {} : { databaseUrl })
      try {
        const given = { dataDir: world.dataDir, ...(databaseUrl === undefined ? {} : { databaseUrl }) }
        // The server creates its keys and tables in this interval.
        for (let n = 0; n < FIRST_STARTS; n += 1) await killDuringStart(given, 100 + Math.random() * 600)
        const server = await world.start()
        await addBackends(server, upstream.config())
        const agent = await addAgent(server, 'agent')
        await issue(server, agent.token, { backend: 'tok' })
      } finally {
        await world.close()
      }
    })
  },
)

describe.each(['sqlite', 'postgres'] as const)('kill -9 under load, %s as the store', (dialect) => {
  test(`${ROUNDS[dialect]} times`, { timeout: LONG_MS }, async () => {
    const databaseUrl = dialect === 'postgres' ? (await upstream.server.createDatabase()).url : undefined
    const flags = ['--upstream-timeout', '1s']
    const world = await openWorld({ flags, ...(databaseUrl === undefined ? {} : { databaseUrl }) })
    const stage = { world, state: newAcknowledgedState(), kills: 0 }
    stages.set(dialect, stage)
    stage.kills = await rounds(stage, ROUNDS[dialect])
    await issueLasting(await world.start(), stage.state)
    await world.server().kill()
    await world.start()
    stage.kills += 1
    expect(stage.state.unexpected).toEqual([])
  })
})

describe.each(['sqlite', 'postgres'] as const)('after the kills, %s as the store', (dialect) => {
  let server: ServerProcess
  let alive: Set<string>

  test('settles interrupted changes', { timeout: LONG_MS }, async () => {
    const { world, state } = stageOf(dialect)
    server = world.server()
    await poll('the short-lived credentials have expired', () => Date.now() > lastShortExpiry(state))
    await untilSettled(world)
  })

  test('keeps every acknowledged change', { timeout: LONG_MS }, async () => {
    const { state } = stageOf(dialect)
    alive = await activeAgentIds(server)
    await checkAcknowledged(server, state, alive)
  })

  test('every active credential can log in', { timeout: LONG_MS }, async () => {
    const logins = await checkLogins(stageOf(dialect).state, alive)
    expect(logins).toBeGreaterThan(0)
  })

  test('has exactly one audit entry for every change', { timeout: LONG_MS }, async () => {
    const { world, state } = stageOf(dialect)
    expect(await server.terminate()).toEqual({ code: 0, signal: null })
    await checkAudit(world, state, alive)
  })
})

test('the upstream has exactly the recorded accounts', { timeout: LONG_MS }, async () => {
  const outstanding: string[] = []
  for (const [dialect, { world, state, kills }] of stages) {
    const rows = await world.rows<StoredCredential>(CREDENTIALS)
    const states = Object.groupBy(rows, (row) => row.state)
    const held = rows.filter(
      (row) => row.revocation === 'exact' && ['active', 'revoking', 'pending'].includes(row.state),
    )
    expect(held.filter((row) => row.state !== 'active')).toEqual([])
    expect(held.filter((row) => row.expires_at <= Date.now())).toEqual([])
    outstanding.push(...held.map((row) => roleOf(row.id)))
    const counted = Object.entries(states).map(([name, group]) => `${group?.length} ${name}`)
    console.log(
      `${dialect}: ${kills} kills, ${state.acknowledged} acknowledged, ${state.unanswered} unanswered, ` +
        `${held.length} roles at the end; records: ${counted.join(', ')}`,
    )
  }
  expect(await upstream.roles()).toEqual(outstanding.sort())
  const unusable = await upstream.sql(
    "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%' AND (NOT rolcanlogin OR rolvaliduntil < now())",
  )
  expect(unusable).toEqual([])
})
