import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import { Merger } from '../../src/store/postgres/merge.ts'
import { eventually } from '../support/app.ts'
import { auditRow, DIALECTS, newBody, newEntry, openTestStore, type TestStore } from '../support/store.ts'

const MINUTE = 60_000

describe.each(DIALECTS)('reading the audit forward: %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  const waiting = (at: number) => newEntry({ id: newBody(at), at, action: 'enrollment.requested' })
  const newest = async () => (await opened.store.audit.query({}, 1))[0]?.id ?? ''

  test('the horizon follows the clock, and never passes it', async () => {
    const { store } = opened
    await eventually(async () => {
      const horizon = await store.audit.horizon()
      expect(horizon > lowestBodyAt(store.now() - MINUTE)).toBe(true)
      expect(horizon <= lowestBodyAt(store.now())).toBe(true)
    })
  })

  test('an entry that is committed long after it was made gets the time of its commit', async () => {
    const { store } = opened
    const before = store.now()
    await store.commit([store.audit.record(waiting(before - MINUTE))])
    const id = await newest()
    expect(id >= lowestBodyAt(before - 1_000)).toBe(true)
    // One that may be there already keeps its id.
    const kept = waiting(before - MINUTE)
    await store.commit([store.audit.append(kept)])
    expect((await store.audit.notable('', 10)).map((one) => one.id)).toEqual([kept.id, id])
  })

  test('notable entries come oldest first, after the position', async () => {
    const { store } = opened
    const at = store.now() + MINUTE
    const rows = [waiting(at), newEntry({ id: newBody(at + 1), at }), waiting(at + 2), waiting(at + 3)]
    await store.commit(rows.map(store.audit.append))
    const found = await store.audit.notable(lowestBodyAt(at), 2)
    expect(found.map(({ id }) => id)).toEqual([rows[0]?.id, rows[2]?.id])
    expect((await store.audit.notable(rows[2]?.id ?? '', 2)).map(({ id }) => id)).toEqual([rows[3]?.id])
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

  test('a position that follows the horizon loses no entry of a commit that another node finishes late', async () => {
    const { store } = one
    // A node has begun to commit a minute ago, and has not finished.
    const late = auditRow({ id: newBody(store.now() - MINUTE), action: 'enrollment.requested' })
    await slow.query('BEGIN')
    const columns = Object.keys(late)
    const places = columns.map((_, index) => `$${index + 1}`)
    await slow.query(`INSERT INTO audit (${columns}) VALUES (${places})`, Object.values(late))
    const seen = newEntry({
      id: newBody(store.now() - MINUTE / 2),
      at: store.now(),
      action: 'enrollment.requested',
    })
    await other.store.commit([store.audit.append(seen)])

    const horizon = await store.audit.horizon()
    const found = await store.audit.notable('', 10)
    expect(found.map(({ id }) => id)).toEqual([seen.id])
    await slow.query('COMMIT')

    // A position that has moved to the newest entry has passed the late one.
    expect(await store.audit.notable(seen.id, 10)).toEqual([])
    expect(horizon < late.id).toBe(true)
    expect((await store.audit.notable(horizon, 10)).map(({ id }) => id)).toEqual([late.id, seen.id])
    await eventually(async () => expect((await store.audit.horizon()) > late.id).toBe(true))
  })

  test('the database takes no entry of a statement that was long on its way', async () => {
    const row = auditRow({ id: newBody(one.store.now()) })
    const merge = (sentAt: number) => new Merger().merge([[{ op: 'insert', table: 'audit', row }]], sentAt)
    await expect(slow.query(merge(one.store.now() - 16_000))).rejects.toThrow('division by zero')
    await slow.query(merge(one.store.now() - 10_000))
    expect((await one.store.audit.query({ from: row.id }, 1))[0]?.id).toBe(row.id)
  })

  test('the notable entries are found by their own index', async () => {
    await slow.query('SET enable_seqscan = off')
    const { rows } = await slow.query(
      "EXPLAIN SELECT * FROM audit WHERE action IN ('enrollment.requested', 'credential.revoke_failed', 'backend.down', 'backend.up', 'backend.root_aged', 'certificate.expiring', 'notification.dropped', 'placeholder.misused') AND id > '0' ORDER BY id LIMIT 9",
    )
    expect(JSON.stringify(rows)).toContain('audit_notable')
  })
})
