/**
 * Audit queries over a large log: `node bench/store-audit.ts sqlite|postgres [entries] [where]`, `where` being a
 * directory or a database URL that is kept and used again. Prints one JSON line: p50 and p99 in ms of every
 * combination of filters, limit 100.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { encodeTail, encodeTime, lowestBodyAt } from '../src/domain/ids.ts'
import { openStore } from '../src/store/open.ts'
import { columnNames, columnTypes } from '../src/store/schema/columns.ts'
import type { AuditRow } from '../src/store/schema/rows.ts'
import type { AuditFilter } from '../src/store/tables/audit/filter.ts'

const [dialect = 'sqlite', count = '1000000', where = `/tmp/mayfly-bench-${count}`] = process.argv.slice(2)
const ENTRIES = Number(count)
const AGENTS = 1_000
const BACKENDS = 10
const START = Date.UTC(2026, 0, 1)
const STEP_MS = 250
const SKEWED: readonly (readonly [action: string, weight: number])[] = [
  ['credential.issued', 400],
  ['credential.requested', 250],
  ['credential.expired', 200],
  ['credential.revoked', 60],
  ['token.issued', 60],
  ['credential.settled', 15],
  ['credential.issue_failed', 5],
  ['auth.failed', 5],
  ['signing_key.read', 3],
  ['agent.created', 1],
  ['credential.revoke_failed', 1],
]
const WEIGHT = SKEWED.reduce((sum, [, weight]) => sum + weight, 0)

function actionAt(point: number): string {
  let rest = point
  for (const [action, weight] of SKEWED) {
    if (rest < weight) return action
    rest -= weight
  }
  return 'credential.issued'
}

let seed = 1
function next(below: number): number {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
  return (seed >>> 8) % below
}

const random = randomBytes(65_536)
const OF_SYSTEM = ['credential.expired', 'credential.settled']
const agentAt = (n: number) => `ag_${encodeTime(START + n)}${'0'.repeat(16)}`

/** One in fifty by an administrator: the local host, or one of five agents. */
function actorAt(action: string, agent: number): string {
  const point = next(300)
  if (point < 6) return point === 0 ? 'local' : agentAt(point)
  return OF_SYSTEM.includes(action) ? 'system' : agentAt(agent)
}

function entryAt(n: number): AuditRow {
  const at = START + n * STEP_MS
  const id = encodeTime(at) + encodeTail(n & 4095, random, (n * 13) % 65_000)
  const action = actionAt(next(WEIGHT))
  const agent = next(AGENTS)
  return {
    id,
    at,
    action,
    outcome: 'ok',
    agent_id: action === 'auth.failed' ? '' : agentAt(agent),
    agent_name: `agent-${agent}`,
    actor: actorAt(action, agent),
    backend: action.startsWith('credential') ? `backend-${next(BACKENDS)}` : '',
    credential_id: action.startsWith('credential')
      ? `cred_${encodeTime(at - (at % 1_000))}${'0'.repeat(16)}`
      : null,
    scopes: '["repo:read"]',
    ttl_ms: 600_000,
    ip_address: '10.0.0.1',
    user_agent: 'mayfly/0.1.0',
    auth_method: 'bearer',
    request_id: null,
    metadata: null,
    details: null,
  }
}

async function fillSqlite(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true })
  await (await openStore({ directory })).close()
  const db = new DatabaseSync(join(directory, 'mayfly.db'))
  const found = Number(db.prepare('SELECT count(*) AS n FROM audit').get()?.['n'])
  db.exec('PRAGMA synchronous = OFF')
  const columns = columnNames('audit')
  const insert = db.prepare(
    `INSERT INTO audit (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  for (let n = found; n < ENTRIES; ) {
    db.exec('BEGIN')
    for (const end = Math.min(ENTRIES, n + 100_000); n < end; n += 1) {
      const row = entryAt(n) as unknown as Record<string, string | number | null>
      insert.run(...columns.map((column) => row[column] ?? null))
    }
    db.exec('COMMIT')
  }
  db.close()
}

async function fillPostgres(url: string): Promise<void> {
  await (await openStore({ directory: '', databaseUrl: url })).close()
  const client = new pg.Client(url)
  await client.connect()
  const found = Number((await client.query('SELECT count(*) AS n FROM audit')).rows[0].n)
  const columns = columnNames('audit')
  const arrays = columnTypes('audit').map(([, type], index) => `$${index + 1}::${type}[]`)
  await client.query('SET synchronous_commit = off')
  for (let n = found; n < ENTRIES; ) {
    const rows: Record<string, unknown>[] = []
    for (const end = Math.min(ENTRIES, n + 20_000); n < end; n += 1) {
      rows.push(entryAt(n) as unknown as Record<string, unknown>)
    }
    await client.query(
      `INSERT INTO audit (${columns.join(', ')}) SELECT * FROM unnest(${arrays.join(', ')})`,
      columns.map((name) => rows.map((row) => row[name])),
    )
  }
  await client.query('VACUUM ANALYZE audit')
  await client.end()
}

if (dialect === 'sqlite') await fillSqlite(where)
else await fillPostgres(where)

const store = await openStore(
  dialect === 'sqlite' ? { directory: where } : { directory: '', databaseUrl: where },
)
const middle = lowestBodyAt(START + (ENTRIES / 2) * STEP_MS)
const late = lowestBodyAt(START + ENTRIES * 0.9 * STEP_MS)
const choices: Record<string, (() => Partial<AuditFilter>)[]> = {
  agent: [() => ({}), () => ({ agentId: agentAt(next(AGENTS)) })],
  actor: [
    () => ({}),
    () => ({ actor: agentAt(next(AGENTS)) }),
    () => ({ actor: agentAt(1 + next(5)) }),
    () => ({ actor: 'local' }),
    () => ({ actor: 'system' }),
  ],
  backend: [() => ({}), () => ({ backend: `backend-${next(BACKENDS)}` })],
  action: [() => ({}), () => ({ action: 'credential.issued' }), () => ({ action: 'agent.created' })],
  from: [() => ({}), () => ({ from: middle })],
  before: [() => ({}), () => ({ before: late })],
}
const names = ['agent', 'actor', 'backend', 'action', 'from', 'before']
const suffix = (name: string, index: number) =>
  name === 'actor' ? `(${['', 'agent', 'admin', 'local', 'system'][index]})` : index === 2 ? '(rare)' : ''
let combinations: { label: string; make: () => AuditFilter }[] = [{ label: '', make: () => ({}) }]
for (const name of names) {
  combinations = combinations.flatMap(({ label, make }) =>
    (choices[name] ?? []).map((choose, index) => ({
      label: index === 0 ? label : `${label}${label === '' ? '' : '+'}${name}${suffix(name, index)}`,
      make: () => ({ ...make(), ...choose() }),
    })),
  )
}
combinations.push({
  label: 'credential',
  make: () => ({ credentialId: `cred_${encodeTime(START + next(1_000) * 1_000)}${'0'.repeat(16)}` }),
})

const figures: Record<string, { p50: number; p99: number; rows: number }> = {}
for (const { label, make } of combinations) {
  const taken: number[] = []
  let rows = 0
  for (let round = 0; round < 60; round += 1) {
    const filter = make()
    const began = performance.now()
    rows = (await store.audit.query(filter, 100)).length
    if (round >= 10) taken.push(performance.now() - began)
  }
  taken.sort((one, other) => one - other)
  const at = (share: number) => Number((taken[Math.floor(taken.length * share)] ?? 0).toFixed(2))
  figures[label === '' ? 'none' : label] = { p50: at(0.5), p99: at(0.99), rows }
}
await store.close()
const worst = Math.max(...Object.values(figures).map((one) => one.p50))
console.log(JSON.stringify({ bench: 'store-audit', dialect, entries: ENTRIES, worstP50: worst, figures }))
