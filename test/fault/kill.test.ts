import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
import { issueLasting, type Ledger, newLedger, runLoad } from '../support/kill-load.ts'
import { checkAudit, checkLedger, checkLogins, lastShort, livingAgents } from '../support/ledger-checks.ts'
import { LONG } from '../support/long.ts'
import { killDuringStart, poll, type ServerProcess } from '../support/server-process.ts'

const ROUNDS = { sqlite: LONG ? 100 : 2, postgres: LONG ? 50 : 1 }
const FIRST_STARTS = LONG ? 50 : 1
const LONG_MS = 60 * 60_000
/** Acknowledgements of one round before the kill: any number up to this. */
const MOST_ACKNOWLEDGED = 80

interface Stage {
  world: World
  ledger: Ledger
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

/** The process is killed at any moment, at its start too, and started again on the same store. */
async function rounds({ world, ledger }: Stage, count: number): Promise<number> {
  let kills = 0
  for (; kills < count; kills += 1) {
    const server = await world.start()
    if (kills === 0) await addBackends(server, upstream.config())
    const enough = ledger.acknowledged + 1 + Math.floor(Math.random() * MOST_ACKNOWLEDGED)
    const load = runLoad(server, ledger, () => false)
    await poll('acknowledgements', () => server.hasEnded() || ledger.acknowledged >= enough, { everyMs: 1 })
    // Away from the moment of a reply, which is what was counted.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
    expect(await server.kill()).toEqual({ code: null, signal: 'SIGKILL' })
    await load
  }
  return kills
}

describe.each(['sqlite', 'postgres'] as const)(
  'kill -9 while it starts for the first time, %s',
  (dialect) => {
    test(`${FIRST_STARTS} times`, { timeout: LONG_MS }, async () => {
      const databaseUrl = dialect === 'postgres' ? (await upstream.server.createDatabase()).url : undefined
      const world = await openWorld(databaseUrl === undefined ? {} : { databaseUrl })
      try {
        const given = { dataDir: world.dataDir, ...(databaseUrl === undefined ? {} : { databaseUrl }) }
        // Around the time at which it makes its keys and its tables.
        for (let n = 0; n < FIRST_STARTS; n += 1) await killDuringStart(given, 200 + Math.random() * 800)
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
    const stage = { world, ledger: newLedger(), kills: 0 }
    stages.set(dialect, stage)
    stage.kills = await rounds(stage, ROUNDS[dialect])
    await issueLasting(await world.start(), stage.ledger)
    await world.server().kill()
    await world.start()
    stage.kills += 1
    expect(stage.ledger.odd).toEqual([])
  })
})

describe.each(['sqlite', 'postgres'] as const)('after the kills, %s as the store', (dialect) => {
  let server: ServerProcess
  let alive: Set<string>

  test('what was interrupted is settled', { timeout: LONG_MS }, async () => {
    const { world, ledger } = stageOf(dialect)
    server = world.server()
    await poll('the short ones have run out', () => Date.now() > lastShort(ledger))
    await untilSettled(world)
  })

  test('no acknowledged change is missing', { timeout: LONG_MS }, async () => {
    const { ledger } = stageOf(dialect)
    alive = await livingAgents(server)
    await checkLedger(server, ledger, alive)
  })

  test('whoever holds a living credential can use it', { timeout: LONG_MS }, async () => {
    const logins = await checkLogins(stageOf(dialect).ledger, alive)
    expect(logins).toBeGreaterThan(0)
  })

  test('every change has one audit entry', { timeout: LONG_MS }, async () => {
    const { world, ledger } = stageOf(dialect)
    expect(await server.terminate()).toEqual({ code: 0, signal: null })
    await checkAudit(world, ledger, alive)
  })
})

test('what is upstream is what is on record', { timeout: LONG_MS }, async () => {
  const outstanding: string[] = []
  for (const [dialect, { world, ledger, kills }] of stages) {
    const rows = await world.rows<StoredCredential>(CREDENTIALS)
    const states = Object.groupBy(rows, (row) => row.state)
    const held = rows.filter(
      (row) => row.revocation === 'exact' && ['active', 'revoking', 'pending'].includes(row.state),
    )
    expect(held.filter((row) => row.state !== 'active')).toEqual([])
    expect(held.filter((row) => row.expires_at <= Date.now())).toEqual([])
    outstanding.push(...held.map((row) => roleOf(row.id)))
    const counted = Object.entries(states).map(([state, of]) => `${of?.length} ${state}`)
    console.log(
      `${dialect}: ${kills} kills, ${ledger.acknowledged} acknowledged, ${ledger.unanswered} unanswered, ` +
        `${held.length} roles at the end; records: ${counted.join(', ')}`,
    )
  }
  expect(await upstream.roles()).toEqual(outstanding.sort())
  const unusable = await upstream.sql(
    "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%' AND (NOT rolcanlogin OR rolvaliduntil < now())",
  )
  expect(unusable).toEqual([])
})
