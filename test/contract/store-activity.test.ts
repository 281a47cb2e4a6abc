import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { countActivity, readCounted } from '../../src/core/audit/count-activity.ts'
import { SPANS } from '../../src/domain/activity.ts'
import { lowestBodyAt, timeOfBody } from '../../src/domain/ids.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import type { Store } from '../../src/store/open.ts'
import type { Activity } from '../../src/store/tables/activity.ts'
import { eventually } from '../support/app.ts'
import { auditRow, DIALECTS, newBody, newEntry, openTestStore, type TestStore } from '../support/store.ts'

const entry = (
  at: number,
  action: 'credential.issued' | 'token.issued' = 'credential.issued',
  backend = 'db',
) => newEntry({ id: newBody(at), at, action, backend: action === 'token.issued' ? null : backend })

async function rowsOf(store: Store, span: number, filter: { backend?: string; action?: string } = {}) {
  const all: Activity[] = []
  for await (const rows of store.activity.rows({ span, from: 0, before: Number.MAX_SAFE_INTEGER, ...filter }))
    all.push(...rows)
  return all.sort((one, other) => one.at - other.at || (one.action < other.action ? -1 : 1))
}
const totalOf = async (store: Store, span: number) =>
  (await rowsOf(store, span)).reduce((sum, { count }) => sum + count, 0)
/** Until nothing is left. */
async function countAll(store: Store) {
  while (await countActivity({ store }));
}

describe.each(DIALECTS)('activity: %s', (dialect) => {
  let opened: TestStore
  let store: Store
  /** Behind every horizon. */
  let start: number
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    store = opened.store
    await eventually(async () =>
      expect((await store.audit.horizon()) > lowestBodyAt(store.now() - MINUTE_MS)).toBe(true),
    )
    start = Math.floor((store.now() - 3 * DAY_MS) / DAY_MS) * DAY_MS
  })
  afterAll(() => opened.close())

  test('a new store is counted up to the horizon', async () => {
    expect(await store.activity.position()).toBeUndefined()
    const { until, position } = await readCounted({ store })
    expect([position, store.now() - until < MINUTE_MS]).toEqual(['', true])
    expect(await countActivity({ store })).toBe(false)
    expect(await store.activity.position()).toBeUndefined()
  })

  test('an entry counts once in each span, at the time of its id', async () => {
    const entries = [
      entry(start + 1),
      entry(start + MINUTE_MS - 1),
      entry(start + MINUTE_MS),
      entry(start + MINUTE_MS, 'token.issued'),
      entry(start + HOUR_MS, 'credential.issued', 'other'),
    ]
    await store.commit(entries.map(store.audit.append))
    await countAll(store)
    await countAll(store)
    expect(await rowsOf(store, MINUTE_MS)).toEqual([
      { at: start, backend: 'db', action: 'credential.issued', count: 2 },
      { at: start + MINUTE_MS, backend: 'db', action: 'credential.issued', count: 1 },
      { at: start + MINUTE_MS, backend: '', action: 'token.issued', count: 1 },
      { at: start + HOUR_MS, backend: 'other', action: 'credential.issued', count: 1 },
    ])
    expect(await Promise.all(SPANS.map((span) => totalOf(store, span)))).toEqual([5, 5, 5, 5])
    expect(await rowsOf(store, HOUR_MS, { backend: 'db', action: 'credential.issued' })).toEqual([
      { at: start, backend: 'db', action: 'credential.issued', count: 3 },
    ])
  })

  test('rows are added up by a longer step, for each backend or for all', async () => {
    const range = { span: MINUTE_MS, from: start, before: start + 2 * HOUR_MS }
    const summed = async (byBackend: boolean) => {
      const found: unknown[] = []
      for await (const part of store.activity.sums(range, { step: 5 * MINUTE_MS, byBackend }))
        for (const { at, backend, action, count, rows } of part)
          found.push([(at - start) / MINUTE_MS, backend, action, count, rows])
      return found.sort()
    }
    expect(await summed(true)).toEqual([
      [0, '', 'token.issued', 1, 1],
      [0, 'db', 'credential.issued', 3, 2],
      [60, 'other', 'credential.issued', 1, 1],
    ])
    expect(await summed(false)).toEqual([
      [0, '', 'credential.issued', 3, 2],
      [0, '', 'token.issued', 1, 1],
      [60, '', 'credential.issued', 1, 1],
    ])
  })

  test('more entries than one commit takes are counted in pages; later ones add to the same rows', async () => {
    const before = await totalOf(store, DAY_MS)
    const from = timeOfBody((await store.activity.position()) ?? '') + 1
    const at = Math.min(from, store.now() - MINUTE_MS)
    for (let n = 0; n < 5; n += 1)
      await store.commit(Array.from({ length: 900 }, () => store.audit.append(entry(at + n))))
    // The position has passed them: it followed the horizon. Back to where they come after it.
    const position = (await store.activity.position()) ?? ''
    await store.commit([store.meta.replace('activity', position, lowestBodyAt(at))])
    expect(await countActivity({ store })).toBe(true)
    expect((await totalOf(store, DAY_MS)) - before).toBe(2_000)
    await countAll(store)
    expect((await totalOf(store, DAY_MS)) - before).toBe(4_500)
  })

  test('a position that has moved meanwhile refuses the counts that belong to it', async () => {
    const before = await totalOf(store, MINUTE_MS)
    const position = (await store.activity.position()) ?? ''
    const counted = [{ id: newBody(start), backend: 'db', action: 'credential.issued' }]
    const stale = store.activity.count(counted, lowestBodyAt(1), lowestBodyAt(2))
    const first = store.activity.count(counted, undefined, lowestBodyAt(2))
    expect((await store.commit(stale)).done).toBe(false)
    expect((await store.commit(first)).done).toBe(false)
    expect([await store.activity.position(), await totalOf(store, MINUTE_MS)]).toEqual([position, before])
  })

  test('rows are dropped when all of their time has passed', async () => {
    const aged = start + 2 * MINUTE_MS
    expect(await store.activity.hasAged(start + MINUTE_MS - 1)).toBe(false)
    expect(await store.activity.hasAged(aged)).toBe(true)
    await store.commit(store.activity.dropAged(aged, 5_000))
    expect(await store.activity.hasAged(aged)).toBe(false)
    expect((await rowsOf(store, MINUTE_MS))[0]?.at).toBe(start + HOUR_MS)
    expect((await rowsOf(store, HOUR_MS))[0]?.at).toBe(start)
    await store.commit(store.activity.dropAged(start + DAY_MS, 5_000))
    expect((await rowsOf(store, DAY_MS))[0]?.at).toBeGreaterThan(start)
  })
})

describe('two nodes on PostgreSQL', () => {
  let one: TestStore
  let other: TestStore
  let slow: pg.Client
  beforeAll(async () => {
    one = await openTestStore('postgres')
    other = await one.another()
    slow = new pg.Client({ connectionString: one.url })
    await slow.connect()
  })
  afterAll(async () => {
    await slow.end()
    await other.close()
    await one.close()
  })

  test('nodes that count at the same time count each entry once, also one that is committed late', async () => {
    const at = one.store.now() - 3 * MINUTE_MS
    const late = auditRow({ id: newBody(one.store.now() - MINUTE_MS) })
    await slow.query('BEGIN')
    const columns = Object.keys(late)
    const places = columns.map((_, index) => `$${index + 1}`)
    await slow.query(`INSERT INTO audit (${columns}) VALUES (${places})`, Object.values(late))
    for (let n = 0; n < 9; n += 1)
      await one.store.commit(Array.from({ length: 900 }, () => one.store.audit.append(entry(at + n))))
    // Its id is greater than that of the late one.
    await one.store.commit([one.store.audit.append(entry(one.store.now() - MINUTE_MS / 2))])

    const nodes = [one.store, other.store]
    // The horizon waits for the open transaction.
    await Promise.all(nodes.map(countAll))
    expect(await totalOf(one.store, DAY_MS)).toBe(0)
    await slow.query('COMMIT')
    await eventually(async () => {
      await Promise.all(nodes.map(countAll))
      expect(await totalOf(one.store, DAY_MS)).toBe(8_102)
    })
    await Promise.all(nodes.map(countAll))
    expect(await Promise.all(SPANS.map((span) => totalOf(other.store, span)))).toEqual([
      8_102, 8_102, 8_102, 8_102,
    ])
  })
})
