import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  addBackends,
  CREDENTIALS,
  logIn,
  must,
  openWorld,
  type Row,
  roleOf,
  type StoredCredential,
  startUpstream,
  type Upstream,
  untilSettled,
  type World,
} from '../support/fault-world.ts'
import { type KnownCredential, type Ledger, newLedger, runLoad } from '../support/kill-load.ts'
import { poll, type ServerProcess } from '../support/server-process.ts'

const LONG = process.env['MAYFLY_LONG'] === '1'
const ROUNDS = { sqlite: LONG ? 100 : 6, postgres: LONG ? 50 : 4 }
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

describe.each(['sqlite', 'postgres'] as const)('kill -9 under load, %s as the store', (dialect) => {
  test(`${ROUNDS[dialect]} times`, { timeout: LONG_MS }, async () => {
    const databaseUrl = dialect === 'postgres' ? (await upstream.server.createDatabase()).url : undefined
    const flags = ['--upstream-timeout', '500ms']
    const world = await openWorld({ flags, ...(databaseUrl === undefined ? {} : { databaseUrl }) })
    const stage = { world, ledger: newLedger(), kills: 0 }
    stages.set(dialect, stage)
    stage.kills = await rounds(stage, ROUNDS[dialect])
    expect(stage.ledger.odd).toEqual([])
    await world.start()
  })
})

describe.each(['sqlite', 'postgres'] as const)('after the kills, %s as the store', (dialect) => {
  let server: ServerProcess
  let alive: Set<string>

  test('what was interrupted is settled', { timeout: LONG_MS }, async () => {
    const { world, ledger } = stageOf(dialect)
    server = world.server()
    const last = Math.max(
      ...[...ledger.credentials.values()]
        .map(({ issued }) => Date.parse(issued.expires_at))
        .filter((at) => at < Date.now() + 60_000),
      0,
    )
    await poll('the short ones have run out', () => Date.now() > last + 2_000)
    await untilSettled(server)
  })

  test('no acknowledged change is missing', { timeout: LONG_MS }, async () => {
    const { ledger } = stageOf(dialect)
    alive = await livingAgents(server)
    for (const agent of ledger.agents) {
      if (agent.deleted === 'no') expect(alive.has(agent.id), agent.name).toBe(true)
      if (agent.deleted === 'done') expect(alive.has(agent.id), agent.name).toBe(false)
    }
    for (const known of ledger.credentials.values()) await checkRecord(server, known, alive)
  })

  test('whoever holds a living credential can use it', { timeout: LONG_MS }, async () => {
    const { ledger } = stageOf(dialect)
    let logins = 0
    for (const { issued, agent, revoked, short } of ledger.credentials.values()) {
      if (issued.backend !== 'db' || revoked !== 'no' || short || !alive.has(agent.id)) continue
      await logIn(issued)
      logins += 1
    }
    expect(logins).toBeGreaterThan(0)
  })

  test('every change has one audit entry', { timeout: LONG_MS }, async () => {
    const { world, ledger } = stageOf(dialect)
    expect(await server.terminate()).toEqual({ code: 0, signal: null })
    const rows = new Map((await world.rows<StoredCredential>(CREDENTIALS)).map((row) => [row.id, row]))
    const count = await countEntries(world)
    for (const { issued, revoked } of ledger.credentials.values()) {
      expect(count('credential.issued', issued.id), issued.id).toBe(1)
      if (revoked === 'done') expect(count('credential.revoked', issued.id), issued.id).toBe(1)
    }
    for (const row of rows.values()) checkEntries(row, count)
    for (const agent of ledger.agents) {
      expect(count('agent.created', agent.id)).toBe(1)
      expect(count('agent.deleted', agent.id)).toBe(alive.has(agent.id) ? 0 : 1)
    }
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

async function livingAgents(server: ServerProcess): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let cursor = ''; ; ) {
    const page = await must<{ id: string }[]>(server, undefined, 'GET', `/v1/admin/agents?limit=100${cursor}`)
    for (const { id } of page) ids.add(id)
    if (page.length < 100) return ids
    cursor = `&cursor=${page.at(-1)?.id}`
  }
}

async function checkRecord(server: ServerProcess, known: KnownCredential, alive: Set<string>): Promise<void> {
  const { issued, agent, revoked, revokedAt, short } = known
  const record = await must(server, undefined, 'GET', `/api/v1/credentials/${issued.id}`)
  const { id, backend, scopes, expires_at, created_at } = issued
  expect(record).toMatchObject({ id, backend, scopes, expires_at, created_at, agent: agent.name })
  const status = record['status']
  if (short) expect(['expired', 'revoked']).toContain(status)
  else if (!alive.has(agent.id)) expect(status).toBe('revoked')
  else if (revoked === 'no') expect(status).toBe('active')
  if (revoked === 'done') expect(record).toMatchObject({ status: 'revoked', revoked_at: revokedAt })
}

async function countEntries(world: World): Promise<(action: string, id: string) => number> {
  const rows = await world.rows<Row>(
    `SELECT action, coalesce(credential_id, agent_id) AS id, count(*) AS n FROM audit
      WHERE outcome = 'ok' GROUP BY action, coalesce(credential_id, agent_id)`,
  )
  const counts = new Map(rows.map((row) => [`${row['action']} ${row['id']}`, Number(row['n'])]))
  return (action, id) => counts.get(`${action} ${id}`) ?? 0
}

/** Whatever became of it: one entry for its issue where there was one, one for its end where it has ended. */
function checkEntries(row: StoredCredential, count: (action: string, id: string) => number): void {
  const { id, state, end_reason: reason } = row
  const ends = count('credential.revoked', id) + count('credential.expired', id)
  const wasIssued = state === 'active' || (state !== 'failed' && reason !== 'interrupted')
  const about = JSON.stringify(row)
  if (row.revocation === 'exact') expect(count('credential.requested', id), about).toBe(1)
  if (state === 'active') expect(ends, about).toBe(0)
  else expect(ends, about).toBeLessThanOrEqual(1)
  if (reason === 'expired') expect(count('credential.expired', id), about).toBe(1)
  if (reason === 'revoked') expect(count('credential.revoked', id), about).toBe(1)
  // One that was pending when its agent was deleted was never issued.
  if (reason === 'agent_deleted') expect(count('credential.issued', id), about).toBeLessThanOrEqual(1)
  else expect(count('credential.issued', id), about).toBe(wasIssued ? 1 : 0)
}
