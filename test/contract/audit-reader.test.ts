import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AuditReader } from '../../src/core/live/reader.ts'
import { eventually } from '../support/app.ts'
import { auditRow, DIALECTS, newBody, newEntry, openTestStore, type TestStore } from '../support/store.ts'

const MOST = 1_000
const MINUTE = 60_000

describe.each(DIALECTS)('following the audit: %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
    await openHorizon(opened)
  })
  afterAll(() => opened.close())

  const add = async (...ages: number[]) => {
    const { store } = opened
    const entries = ages.map((age) => newEntry({ id: newBody(store.now() - age), at: store.now() }))
    await store.commit(entries.map(store.audit.append))
    return entries.map(({ id }) => id)
  }
  const idsOf = async (reader: AuditReader) => (await reader.look(MOST)).entries?.map(({ id }) => id)

  test('the first look returns nothing, and each later one what has appeared since, once', async () => {
    // Not of the same 32 ms as those that follow, which are read together.
    await add(100, 100)
    const reader = new AuditReader(opened)
    expect(await idsOf(reader)).toEqual([])
    const some = await add(0)
    const more = await add(0)
    expect(await idsOf(reader)).toEqual([...some, ...more].sort())
    expect(await idsOf(reader)).toEqual([])
  })

  test('entries that appear out of order, between others of the same moment, are found', async () => {
    const reader = new AuditReader(opened)
    await reader.look(MOST)
    const seen: string[] = []
    const added: string[] = []
    // As old as nothing may be that the horizon has passed.
    for (let n = 0; n < 30; n += 1) {
      added.push(...(await add(...Array.from({ length: 1 + (n % 4) }, () => Math.random() * 400))))
      seen.push(...((await idsOf(reader)) ?? []))
    }
    expect(seen).toEqual(expect.arrayContaining(added))
    // Beside those that were there before it began, of which it knows the number alone.
    expect(new Set(seen).size).toBe(seen.length)
  })

  test('more than asked for are passed over, without being read, and it goes on behind them', async () => {
    const reader = new AuditReader(opened)
    await reader.look(MOST)
    await add(...Array.from({ length: 21 }, () => 0))
    expect((await reader.look(20)).entries).toBeUndefined()
    const before = await eventually(async () => {
      // Their 32 ms must be over: what appears in the same ones comes with its neighbours.
      await new Promise((resolve) => setTimeout(resolve, 40))
      return add(0)
    })
    expect(await idsOf(reader)).toEqual(before)
  })

  test('the position never passes the horizon, follows it, and never goes back', async () => {
    const { store } = opened
    const reader = new AuditReader(opened)
    let last = ''
    await eventually(async () => {
      const { position } = await reader.look(MOST)
      expect(position <= (await store.audit.horizon())).toBe(true)
      expect(position >= last).toBe(true)
      const hasMoved = last !== '' && position > last
      last = position
      expect(hasMoved).toBe(true)
    })
  })

  test('what retention deletes is no news', async () => {
    // The 32 ms of what another test has added must be over: what appears in the same ones comes with its neighbours.
    await new Promise((resolve) => setTimeout(resolve, 40))
    const reader = new AuditReader(opened)
    await reader.look(MOST)
    const ids = await add(0, 0, 0)
    expect(await idsOf(reader)).toEqual(ids.toSorted())
    await opened.store.commit([opened.store.audit.drop(ids.slice(0, 2))])
    expect(await idsOf(reader)).toEqual([])
    expect(await idsOf(reader)).toEqual([])
  })
})

/** On PostgreSQL, once the transactions before the first look have ended. */
async function openHorizon({ store }: TestStore): Promise<void> {
  await eventually(async () =>
    expect((await store.audit.horizon()) > newBody(store.now() - MINUTE)).toBe(true),
  )
}

describe('two nodes on PostgreSQL', () => {
  let one: TestStore
  let slow: pg.Client
  beforeAll(async () => {
    one = await openTestStore('postgres')
    slow = new pg.Client({ connectionString: one.url })
    await slow.connect()
    await openHorizon(one)
  })
  afterAll(async () => {
    await slow.end()
    await one.close()
  })

  test('an entry of a commit that another node finishes late is found, and the position has waited for it', async () => {
    const { store } = one
    const reader = new AuditReader(one)
    const begun = (await reader.look(MOST)).position
    const late = auditRow({ id: newBody(store.now() - 10_000) })
    expect(begun < late.id).toBe(true)
    await slow.query('BEGIN')
    const columns = Object.keys(late)
    const places = columns.map((_, index) => `$${index + 1}`)
    await slow.query(`INSERT INTO audit (${columns}) VALUES (${places})`, Object.values(late))
    const now = newEntry({ id: newBody(store.now()), at: store.now() })
    await store.commit([store.audit.append(now)])
    const first = await reader.look(MOST)
    expect(first.entries?.map(({ id }) => id)).toEqual([now.id])
    expect(first.position < late.id).toBe(true)
    await slow.query('COMMIT')
    await eventually(async () =>
      expect((await reader.look(MOST)).entries?.map(({ id }) => id)).toEqual([late.id]),
    )
  })
})
