import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Change, Outcome } from '../../src/store/engine/change.ts'
import { createStore, type Store } from '../../src/store/open.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { eventually } from '../support/app.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { agentRow, auditRow, credentialRow, T0 } from '../support/store.ts'

let server: TestPostgres
let database: TestDatabase
let holder: pg.Client
let nodes: Store[]
beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  const open = async () => createStore(await openPostgres({ url: database.url }))
  nodes = [await open(), await open()]
  holder = new pg.Client(database.url)
  await holder.connect()
})
afterAll(async () => {
  await holder.end()
  for (const node of nodes) await node.close()
  await database.drop()
  await server.stop()
})

function issue(agentId: string): Change {
  const row = credentialRow({ agent_id: agentId })
  return [
    { op: 'guard', table: 'agents', id: agentId, version: 1 },
    { op: 'insert', table: 'credentials', row },
    { op: 'insert', table: 'audit', row: auditRow({ credential_id: row.id, agent_id: agentId }) },
  ]
}

test.each(['COMMIT', 'ROLLBACK'])(
  'a node that stops while it ends an agent holds up only changes to that agent, until its %s',
  async (how) => {
    const [locked, other] = [agentRow(), agentRow()]
    const rows = [locked, other].map((row) => ({ op: 'insert', table: 'agents', row }) as const)
    expect(await nodes[0]?.commit(rows)).toEqual({ done: true })
    await holder.query('BEGIN')
    await holder.query('UPDATE agents SET ended_at = $2, version = 2 WHERE id = $1', [locked.id, T0])
    const pending: Promise<Outcome>[] = []
    let settled = 0
    const done: Promise<Outcome>[] = []
    for (const node of nodes) {
      // More than there are lanes of either sort, in front of everything else.
      const blocked = [
        ...Array.from({ length: 12 }, () => issue(locked.id)),
        ...Array.from({ length: 12 }, () => node.agents.touch(locked.id)),
      ]
      pending.push(...blocked.map((change) => node.commit(change)))
      done.push(...Array.from({ length: 50 }, () => node.commit(issue(other.id))))
      done.push(...Array.from({ length: 10 }, () => node.commit([{ op: 'invalidate' }])))
    }
    for (const one of pending) one.finally(() => (settled += 1)).catch(() => undefined)
    for (const outcome of await Promise.all(done)) expect(outcome).toEqual({ done: true })
    // Later ones do not wait either.
    for (const node of nodes) expect(await node.commit(issue(other.id))).toEqual({ done: true })
    expect(settled).toBe(0)
    await holder.query(how)
    const outcomes = await Promise.all(pending)
    expect(settled).toBe(pending.length)
    if (how === 'COMMIT')
      for (const outcome of outcomes) expect(outcome).toMatchObject({ done: false, step: 0 })
    // Each touch raises the version, and only issues that were committed before the first one hold their guard.
    else expect(outcomes.filter((outcome) => outcome.done).length).toBeGreaterThanOrEqual(24)
    expect(nodes.map((node) => node.trouble())).toEqual([undefined, undefined])
  },
)

test('a change that only raises the generation does not wait behind changes to a locked agent', async () => {
  const locked = agentRow()
  const [node] = nodes
  if (node === undefined) throw new Error('no node')
  await node.commit([{ op: 'insert', table: 'agents', row: locked }])
  await holder.query('BEGIN')
  await holder.query('UPDATE agents SET version = 2 WHERE id = $1', [locked.id])
  const touching = Array.from({ length: 4 }, () => node.commit(node.agents.touch(locked.id)))
  const waiting = (relation: string) =>
    `SELECT FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_locks WHERE relation = '${relation}'::regclass)`
  const until = async (sql: string) => {
    while ((await holder.query(sql)).rowCount === 0);
  }
  await until(waiting('agents'))
  // As a node whose COMMIT takes long.
  const slow = new pg.Client(database.url)
  await slow.connect()
  await slow.query("BEGIN; UPDATE meta SET value = value WHERE key = 'generation'")
  const raising = node.commit([{ op: 'invalidate' }])
  // Longer than a change waits before it goes to a lane.
  await until(waiting('meta'))
  await holder.query('SELECT pg_sleep(0.5)')
  await slow.query('COMMIT')
  await slow.end()
  expect(await raising).toEqual({ done: true })
  expect((await holder.query(waiting('agents'))).rowCount).toBeGreaterThan(0)
  await holder.query('COMMIT')
  await Promise.all(touching)
})

test('a change that raises the generation and then waits for an agent holds up no other that raises it, and raises it once', async () => {
  const [locked, free, other] = [agentRow(), agentRow(), agentRow()]
  const [node, second] = nodes
  if (node === undefined || second === undefined) throw new Error('no node')
  await node.commit([locked, free, other].map((row) => ({ op: 'insert', table: 'agents', row }) as const))
  const before = await node.generation()
  await holder.query('BEGIN')
  await holder.query('UPDATE agents SET version = 2 WHERE id = $1', [locked.id])
  const waiting = node.commit([
    ...node.agents.touch(free.id),
    ...node.agents.touch(locked.id),
    { op: 'invalidate', topic: free.id },
  ])
  // It has reached the lock, and is past the time after which it would give up.
  const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND clock_timestamp() - xact_start > interval '200 ms'`
  await eventually(async () => {
    await holder.query('SELECT pg_stat_clear_snapshot()')
    expect((await holder.query(waits)).rowCount).toBe(1)
  })
  expect(await second.commit(second.agents.touch(other.id))).toEqual({ done: true })
  expect(await second.generation()).toBe(before + 1)
  await holder.query('ROLLBACK')
  expect(await waiting).toEqual({ done: true })
  expect(await second.generation()).toBe(before + 3)
  expect(second.changedAt(locked.id)).toBeGreaterThan(before + 1)
  expect(second.changedAt(free.id)).toBeGreaterThan(before + 1)
})

test('a change is refused for its first guard that fails, not for one on a locked row', async () => {
  const locked = agentRow()
  const [node] = nodes
  if (node === undefined) throw new Error('no node')
  await node.commit([{ op: 'insert', table: 'agents', row: locked }])
  await holder.query('BEGIN')
  await holder.query('SELECT FROM agents WHERE id = $1 FOR UPDATE', [locked.id])
  const guards = [1, 2].map((version) => ({ op: 'guard', table: 'agents', id: locked.id, version }) as const)
  const refused = node.commit(guards)
  let answered = false
  void refused.finally(() => (answered = true))
  const waiting =
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
  while (!answered && (await holder.query(waiting)).rowCount === 0);
  await holder.query('COMMIT')
  expect(await refused).toEqual({ done: false, step: 1, reason: 'guard' })
})
