import type { CompiledQuery } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY_MS } from '../../src/domain/limits.ts'
import { createPrune } from '../../src/jobs/prune.ts'
import { tidy } from '../../src/jobs/tidy.ts'
import type { Change, Step } from '../../src/store/engine/change.ts'
import type { Engine } from '../../src/store/engine/engine.ts'
import { run } from '../../src/store/engine/run.ts'
import { createStore, type Store } from '../../src/store/open.ts'
import {
  auditRow,
  credentialRow,
  DIALECTS,
  idempotencyRow,
  newBody,
  openTestStore,
  type TestStore,
} from '../support/store.ts'

const RETENTION = 30 * DAY_MS
const NEVER = new AbortController().signal
const pruneOf = (store: Store) => {
  const turn = createPrune({ store }, RETENTION)
  return () => turn(NEVER)
}

describe.each(DIALECTS)('clearing on %s', (dialect) => {
  let opened: TestStore
  let store: Store
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    store = opened.store
  })
  afterAll(() => opened.close())

  const insert = (rows: Change) => store.commit(rows)
  const idOf = (at: number) => `cred_${newBody(at)}`

  test('deletes expired rows a thousand at a time, until none is left', async () => {
    const now = store.now()
    const rows = Array.from({ length: 2_300 }, (_, n): Step => {
      const row = idempotencyRow({ key_hash: `key ${n}`, reply: 'sealed', erase_at: now - 1 })
      return {
        op: 'insert',
        table: 'idempotency',
        row: { ...row, expires_at: n < 1_200 ? now - 1 : now + DAY_MS },
      }
    })
    await insert(rows)
    const left = async () =>
      (
        await opened.engine.read<{ reply: string | null }>(
          opened.engine.build.selectFrom('idempotency').select('reply'),
        )
      ).map(({ reply }) => reply)
    expect(await tidy({ store })).toBe(true)
    expect(await left()).toHaveLength(1_300)
    while (await tidy({ store }));
    expect(await left()).toEqual(Array(1_100).fill(null))
    expect(await tidy({ store })).toBe(false)
  })

  const credential = (id: string, set: object): Step => ({
    op: 'insert',
    table: 'credentials',
    row: credentialRow({ id, state: 'revoked', end_reason: 'revoked', due_at: null, ...set }),
  })
  const entry = (at: number, id: string | null): Step => ({
    op: 'insert',
    table: 'audit',
    row: auditRow({ id: newBody(at), at, credential_id: id }),
  })
  const alive = { state: 'active', end_reason: null, ended_at: null }
  const about = async (id: string) => (await store.audit.query({ credentialId: id }, 10)).length
  const isThere = async (id: string) => (await store.credentials.find(id)) !== undefined

  test('entries and credentials from before the retention, and all about a credential with it', async () => {
    const now = store.now()
    const [old, young] = [now - RETENTION - DAY_MS, now - DAY_MS]
    const [settled, lingering, living, recent, gone] = [old, old, old, young, old].map(idOf) as [
      string,
      string,
      string,
      string,
      string,
    ]
    await insert([
      credential(settled, { ended_at: old, settled_at: old }),
      // Its upstream was away for weeks.
      credential(lingering, { ended_at: old, settled_at: young }),
      credential(living, { ...alive, due_at: now + DAY_MS }),
      credential(recent, { ended_at: young, settled_at: young }),
      entry(old, settled),
      // Somebody asked for its end again.
      entry(young, settled),
      entry(old, lingering),
      entry(young, lingering),
      entry(old, living),
      entry(old, gone),
    ])
    expect(await pruneOf(store)()).toBe(false)
    expect(await Promise.all([settled, lingering, living, recent].map(isThere))).toEqual([
      false,
      true,
      true,
      true,
    ])
    // Whose it is, and how it was issued, is asked for as long as it is on record.
    expect(await Promise.all([settled, lingering, living, gone].map(about))).toEqual([1, 2, 1, 0])
  })

  test('in slices, and what was kept goes with its credential, though it is looked at once', async () => {
    const now = store.now()
    const old = now - RETENTION - DAY_MS
    const ids = Array.from({ length: 600 }, () => idOf(old))
    await insert(ids.map((id) => credential(id, { ...alive, due_at: now + DAY_MS })))
    await insert([...ids, ...ids].map((id) => entry(old, id)))
    const { read, counted } = countRead(opened.engine)
    const turn = pruneOf(createStore({ ...opened.engine, read }))
    while (await turn());
    const first = counted()
    expect(first).toBeGreaterThanOrEqual(1_200)
    expect(await turn()).toBe(false)
    expect(counted()).toBe(first)
    const [one = '', two = '', three = ''] = ids
    const end = (id: string, at: number) =>
      run(
        opened.engine.build
          .updateTable('credentials')
          .set({ state: 'revoked', ended_at: at, settled_at: at, due_at: null })
          .where('id', '=', id),
        1,
      )
    await store.commit([end(one, old), end(two, now)])
    expect(await turn()).toBe(false)
    expect(counted()).toBe(first + 1)
    expect(await Promise.all([one, two, three].map(about))).toEqual([0, 2, 2])
    expect(await Promise.all([one, two, three].map(isThere))).toEqual([false, true, true])
    // Another node, or this one after a restart, has another place.
    await store.commit([end(three, old)])
    const other = pruneOf(store)
    while (await other());
    expect(await Promise.all([two, three].map(about))).toEqual([2, 0])
  })

  test('the next pass deletes an entry that a failed pass left', async () => {
    const gone = idOf(store.now())
    await insert([entry(store.now() - RETENTION - 1_000, gone)])
    let fails = true
    const turn = pruneOf({
      ...store,
      commit: (...change) => (fails ? Promise.reject(new Error('no disk')) : store.commit(...change)),
    })
    await expect(
      (async () => {
        while (await turn());
      })(),
    ).rejects.toThrow('no disk')
    expect(await about(gone)).toBe(1)
    fails = false
    while (await turn());
    expect(await about(gone)).toBe(0)
  })
})

test('looking for old ones reads neither young ones nor those that live', async () => {
  const opened = await openTestStore('sqlite')
  const { engine } = opened
  const asked: CompiledQuery[] = []
  const store = createStore({
    ...engine,
    read: async (query) => {
      asked.push(query.compile() as CompiledQuery)
      return []
    },
  })
  await store.credentials.oldestSettled(engine.now(), 500)
  await store.agents.oldestEnded(engine.now(), 500)
  await store.audit.aged('0', '1', 500)
  const plans = asked.map(async ({ sql, parameters }) => {
    const explain = { sql: `EXPLAIN QUERY PLAN ${sql}`, parameters } as CompiledQuery
    const plan = await engine.read<{ detail: string }>({ compile: () => explain as never })
    return plan.map(({ detail }) => detail)
  })
  expect(await Promise.all(plans)).toEqual([
    [expect.stringMatching(/^SEARCH credentials USING INDEX credentials_settled \(settled_at<\?\)$/)],
    [expect.stringMatching(/^SEARCH agents USING INDEX agents_ended \(ended_at<\?\)$/)],
    [
      expect.stringMatching(/^SEARCH audit .*\(id>\? AND id<\?\)$/),
      expect.stringMatching(/CORRELATED/),
      expect.stringMatching(/^SEARCH credentials .*\(id=\?\)$/),
    ],
  ])
  await opened.close()
})

/** The rows that are read through it. */
function countRead(engine: Engine): { read: Engine['read']; counted: () => number } {
  let rows = 0
  return {
    read: async (query) => {
      const found = await engine.read(query)
      rows += found.length
      return found
    },
    counted: () => rows,
  }
}
