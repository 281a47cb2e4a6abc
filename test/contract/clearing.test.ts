import type { CompiledQuery } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY_MS } from '../../src/domain/limits.ts'
import { prune } from '../../src/jobs/prune.ts'
import { tidy } from '../../src/jobs/tidy.ts'
import type { Change, Step } from '../../src/store/change.ts'
import { createCredentials } from '../../src/store/credentials.ts'
import type { Store } from '../../src/store/open.ts'
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

describe.each(DIALECTS)('what is cleared away on %s', (dialect) => {
  let opened: TestStore
  let store: Store
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    store = opened.store
  })
  afterAll(() => opened.close())

  const insert = (rows: Change) => store.commit(rows)
  const idOf = (at: number) => `cred_${newBody(at)}`

  test('of what has run out a thousand at a time, until there is no more', async () => {
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

  test('entries and credentials from before the retention, and no credential before the last entry about it', async () => {
    const now = store.now()
    const [old, young] = [now - RETENTION - DAY_MS, now - DAY_MS]
    const credential = (id: string, set: object): Step => ({
      op: 'insert',
      table: 'credentials',
      row: credentialRow({ id, state: 'revoked', end_reason: 'revoked', due_at: null, ...set }),
    })
    const [settled, lingering, living, recent] = [idOf(old), idOf(old), idOf(old), idOf(young)]
    const entry = (at: number, id: string): Step => {
      const row = auditRow({ id: newBody(at), at, credential_id: id })
      return { op: 'insert', table: 'audit', row }
    }
    await insert([
      credential(settled, { ended_at: old, settled_at: old }),
      // Its upstream was away for weeks: the entry of its end is still kept.
      credential(lingering, { ended_at: old, settled_at: young }),
      credential(living, { state: 'active', end_reason: null, ended_at: null, due_at: now + DAY_MS }),
      credential(recent, { ended_at: young, settled_at: young }),
      entry(old, settled),
      entry(old, lingering),
      entry(young, lingering),
      entry(old, living),
    ])
    expect(await prune({ store }, RETENTION, NEVER)).toBe(false)
    const kept = await store.credentials.findAll([settled, lingering, living, recent])
    expect(kept.map(({ id }) => id).sort()).toEqual([lingering, living, recent].sort())
    expect(await store.audit.query({ credentialId: settled }, 10)).toEqual([])
    expect(await store.audit.query({ credentialId: lingering }, 10)).toHaveLength(1)
    // Whose it is, and how it was issued.
    expect(await store.audit.query({ credentialId: living }, 10)).toHaveLength(1)
  })
})

test('looking for old ones reads no young ones', async () => {
  const opened = await openTestStore('sqlite')
  const { engine, store } = opened
  const asked: CompiledQuery[] = []
  const credentials = createCredentials({
    ...engine,
    read: async (query) => {
      asked.push(query.compile() as CompiledQuery)
      return []
    },
  })
  await credentials.oldestSettled(store.now(), 500)
  const [{ sql, parameters } = { sql: '', parameters: [] }] = asked
  const explain = { sql: `EXPLAIN QUERY PLAN ${sql}`, parameters } as CompiledQuery
  const plan = await engine.read<{ detail: string }>({ compile: () => explain as never })
  expect(plan.map(({ detail }) => detail)).toEqual([expect.stringMatching(/^SEARCH .*\(id<\?\)$/)])
  await opened.close()
})
