import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DIALECTS, openTestStore, someCredential, T0, type TestStore } from '../support/store.ts'

describe.each(DIALECTS)('reclaiming on %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  test.each(['pending', 'active', 'revoked', 'revoking', 'expired'] as const)(
    'reclaims a credential that is %s, unless its end is under way',
    async (state) => {
      const { store } = opened
      const end = { endedAt: T0 + 1, endReason: 'agent_deleted', settledAt: T0 + 2 } as const
      const hasEnded = state !== 'pending' && state !== 'active'
      const before = someCredential({ state, sealedHandle: null, attempts: 3, ...(hasEnded ? end : {}) })
      await store.commit([store.credentials.insert(before)])
      const reclaim = store.credentials.reclaim(
        before,
        { now: T0 + 5, dueAt: T0 + 9, certain: T0 + 5 },
        'handle',
      )
      expect(await store.commit([reclaim])).toEqual({ done: true })
      const set = { state: 'revoking', dueAt: T0 + 9, sealedHandle: 'handle', attempts: 0, settledAt: null }
      const first = hasEnded ? {} : { endedAt: T0 + 5, endReason: 'interrupted' }
      const isLeft = state === 'revoking' || state === 'expired'
      expect(await store.credentials.find(before.id)).toEqual(
        isLeft ? before : { ...before, ...set, ...first },
      )
    },
  )

  test('leaves one alone that was settled when that was certain', async () => {
    const { store } = opened
    const end = { endedAt: T0 + 1, endReason: 'interrupted', settledAt: T0 + 5, dueAt: null } as const
    const before = someCredential({ state: 'revoked', sealedHandle: null, ...end })
    await store.commit([store.credentials.insert(before)])
    const reclaim = (certain: number) =>
      store.commit([store.credentials.reclaim(before, { now: T0 + 6, dueAt: T0 + 6, certain }, null)])
    await reclaim(T0 + 5)
    expect(await store.credentials.find(before.id)).toEqual(before)
    await reclaim(T0 + 6)
    expect(await store.credentials.find(before.id)).toMatchObject({ state: 'revoking', settledAt: null })
  })

  test('writes a credential again whose row is gone', async () => {
    const { store } = opened
    const lost = someCredential({ state: 'pending', sealedHandle: null })
    expect(
      await store.commit([
        store.credentials.reclaim(lost, { now: T0 + 5, dueAt: T0 + 9, certain: T0 + 5 }, 'handle'),
      ]),
    ).toEqual({
      done: true,
    })
    const end = { state: 'revoking', endedAt: T0 + 5, endReason: 'interrupted', attempts: 0 }
    expect(await store.credentials.find(lost.id)).toEqual({
      ...lost,
      ...end,
      dueAt: T0 + 9,
      sealedHandle: 'handle',
    })
  })
})
