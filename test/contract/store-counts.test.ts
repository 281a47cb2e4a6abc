import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../src/store/engine/run.ts'
import { columnNames } from '../../src/store/schema/columns.ts'
import { credentialRow, DIALECTS, openTestStore, type TestStore } from '../support/store.ts'
import { insert } from '../support/use-store.ts'

const NOW = 1_800_000_000_000
const LATER = NOW + 60_000
type Set = Parameters<typeof credentialRow>[0]

describe.each(DIALECTS)('counts by index: %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  /** As many copies of a row, which differ by their ids, and are due 1 ms later each if `spread`. */
  async function add(count: number, set: Set, spread = false): Promise<void> {
    const row = credentialRow(set)
    await opened.store.commit([insert('credentials', row)])
    const copied = columnNames('credentials').map((name) => {
      if (name === 'id') return sql`${row.id} || n`
      return name === 'due_at' && spread ? sql`due_at + n` : sql.ref(name)
    })
    const copies = sql`INSERT INTO credentials (${sql.join(columnNames('credentials').map((name) => sql.ref(name)))})
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${sql.lit(count - 1)})
      SELECT ${sql.join(copied)} FROM credentials, numbers WHERE id = ${row.id}`
    if (count > 1)
      await opened.store.commit([run({ compile: () => copies.compile(opened.engine.build) }, 'any')])
  }

  const ended = (set: Set): Set => ({ ended_at: NOW - 1, ...set })

  test('those that are due and those that are not settled, by backend, however many slices and equal times there are', async () => {
    // More than two slices; a slice ends among those that are due at one moment.
    await add(30_000, { backend_uid: 'be_big', agent_id: 'ag_big', due_at: LATER, expires_at: LATER })
    await add(25_000, { backend_uid: 'be_big', agent_id: 'ag_other', due_at: LATER, expires_at: LATER }, true)
    await add(3, { backend_uid: 'be_big', agent_id: 'ag_a', due_at: NOW, expires_at: NOW })
    await add(2, { backend_uid: 'be_small', agent_id: 'ag_a', due_at: LATER, expires_at: LATER })
    await add(1, { backend_uid: 'be_old', agent_id: 'ag_a', due_at: NOW - 9_000, expires_at: NOW - 9_000 })
    // Under way, being ended, and ended.
    await add(4, { backend_uid: 'be_small', agent_id: 'ag_b', state: 'pending', due_at: LATER })
    await add(1, { backend_uid: 'be_starting', agent_id: 'ag_b', state: 'pending', due_at: null })
    await add(2_500, ended({ backend_uid: 'be_big', agent_id: 'ag_b', state: 'revoking', due_at: LATER }))
    await add(
      2_500,
      ended({
        backend_uid: 'be_big',
        agent_id: 'ag_b',
        state: 'revoking',
        due_at: LATER,
        ended_at: NOW - 20,
      }),
    )
    await add(7, ended({ backend_uid: 'be_small', agent_id: 'ag_b', state: 'revoking', due_at: NOW - 5 }))
    await add(
      6,
      ended({ backend_uid: 'be_gone', agent_id: 'ag_b', state: 'revoked', due_at: null, settled_at: NOW }),
    )

    const { counts } = opened.store
    expect([...(await counts.due(NOW))].sort()).toEqual([
      ['be_big', { later: 60_000, earliest: NOW }],
      ['be_old', { later: 0, earliest: NOW - 9_000 }],
      ['be_small', { later: 6, earliest: NOW - 5 }],
    ])
    expect([...(await counts.unsettled(NOW))].sort()).toEqual([
      ['be_big', { later: 5_000, unended: { count: 5_000, since: NOW - 20 } }],
      ['be_small', { later: 4, unended: { count: 7, since: NOW - 1 } }],
      ['be_starting', { later: 0, unended: undefined }],
    ])
  })

  test('those of an agent have not ended', async () => {
    expect([...(await opened.store.counts.ofAgents())].sort()).toEqual([
      ['ag_a', 6],
      ['ag_b', 5],
      ['ag_big', 30_000],
      ['ag_other', 25_000],
    ])
  })

  test('the size of the database grows with it', async () => {
    const before = await opened.store.counts.sizeBytes()
    await add(20_000, { backend_uid: 'be_more', agent_id: 'ag_more' })
    expect(await opened.store.counts.sizeBytes()).toBeGreaterThan(before + 1_000_000)
  })
})

test('SQLite counts each slice in its own part of an index', async () => {
  const { engine, close } = await openTestStore('sqlite')
  const plan = async (text: string) => {
    const query = sql.raw<{ detail: string }>(`EXPLAIN QUERY PLAN SELECT ${text}`)
    return (await engine.read({ compile: () => query.compile(engine.build) })).map(({ detail }) => detail)
  }
  const part = (group: string, order: string) =>
    `(${group}, ${order}) > ('b', 5) AND (${group}, ${order}) <= ('c', 6) GROUP BY ${group}`
  const later = 'count(CASE WHEN due_at > 5 THEN 1 END)'
  expect([
    await plan(
      `${later}, min(due_at) FROM credentials WHERE due_at IS NOT NULL AND ${part('backend_uid', 'due_at')}`,
    ),
    await plan(`count(*) FROM credentials WHERE ended_at IS NULL AND ${part('agent_id', 'id')}`),
    await plan(
      `${later} FROM credentials WHERE state IN ('pending', 'revoking') AND ${part('backend_uid', 'id')}`,
    ),
  ]).toEqual([
    [
      'SEARCH credentials USING COVERING INDEX credentials_due ((backend_uid,due_at)>(?,?) AND (backend_uid,due_at)<(?,?))',
    ],
    [
      'SEARCH credentials USING COVERING INDEX credentials_living ((agent_id,id)>(?,?) AND (agent_id,id)<(?,?))',
    ],
    [
      'SEARCH credentials USING INDEX credentials_unsettled ((backend_uid,id)>(?,?) AND (backend_uid,id)<(?,?))',
    ],
  ])
  await close()
})
