import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change, Step } from '../../src/store/engine/change.ts'
import { DIALECTS, newBody, newEnrollment, openTestStore, T0, type TestStore } from '../support/store.ts'

describe.each(DIALECTS)('enrollments and tokens on %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  const commit = (change: Change) => opened.store.commit(change)
  async function done(...change: Step[]) {
    expect(await commit(change)).toEqual({ done: true })
  }
  test('decides and collects an enrollment once', async () => {
    const { store } = opened
    const row = newEnrollment({ scopes: ['a:b'], metadata: { run: 7 }, publicJwk: { kty: 'OKP' } })
    await done(store.enrollments.insert(row))
    expect(await store.enrollments.countPending(9)).toBe(1)
    expect(await store.enrollments.expired(T0 + 999, 9)).toEqual([])
    expect(await store.enrollments.expired(T0 + 1_000, 9)).toEqual([row])
    const by = { decidedAt: T0, decidedBy: 'local' }
    const set = { ...by, status: 'approved', sealedAnswer: 'sealed', collectUntil: T0 + 50 } as const
    await done(store.enrollments.decide(row.id, set))
    expect(await commit([store.enrollments.decide(row.id, { ...by, status: 'rejected' })])).toMatchObject({
      reason: 'rows',
    })
    expect(await store.enrollments.uncollected(T0 + 50, 9)).toEqual([{ ...row, ...set }])
    await done(store.enrollments.collect(row.id, T0 + 1, T0 + 10))
    expect(await commit([store.enrollments.collect(row.id, T0 + 2, T0 + 20)])).toMatchObject({
      reason: 'rows',
    })
    expect(await commit([store.enrollments.abandon(row.id)])).toMatchObject({ reason: 'rows' })
    await done(store.enrollments.eraseAnswers(T0 + 9))
    expect((await store.enrollments.find(row.id))?.sealedAnswer).toBe('sealed')
    await done(store.enrollments.eraseAnswers(T0 + 10))
    expect((await store.enrollments.find(row.id))?.sealedAnswer).toBeNull()
    expect(await store.enrollments.list('approved', undefined, 9)).toHaveLength(1)
  })

  test('keeps issuer keys, used proofs, revoked tokens and repeated requests', async () => {
    const { store } = opened
    const kid = newBody()
    const key = {
      kid,
      publicJwk: { kty: 'RSA' },
      sealedPrivateKey: 's',
      createdAt: T0,
      retiresAt: null,
    }
    await done(store.tokens.insertIssuerKey(key))
    expect(await store.tokens.issuerKeys(T0)).toEqual([key])
    await done(store.tokens.retireIssuerKeys(T0 + 10))
    expect(await store.tokens.issuerKeys(T0 + 9)).toEqual([
      { ...key, sealedPrivateKey: null, retiresAt: T0 + 10 },
    ])
    expect(await store.tokens.issuerKeys(T0 + 10)).toEqual([])
    await done(store.tokens.useProof('proof', T0 + 5))
    expect(await commit([store.tokens.useProof('proof', T0 + 5)])).toMatchObject({
      reason: 'unique',
    })
    await done(...store.tokens.revoke('j', T0 + 5))
    expect(await store.tokens.isRevoked('j')).toBe(true)
    expect(await store.tokens.revokedAfter(T0 + 4)).toEqual(new Map([['j', T0 + 5]]))
    const expires = { eraseAt: T0 + 300_000, expiresAt: T0 + 86_400_000 }
    const request = { agentId: 'ag_1', keyHash: 'key', bodyHash: 'body', credentialId: 'cred_1' }
    const record = { ...request, ...expires, sealedReply: null }
    await done(store.idempotency.insert(record))
    expect(await commit([store.idempotency.insert({ ...record, bodyHash: 'other' })])).toMatchObject({
      reason: 'unique',
    })
    await done(store.idempotency.keepReply('ag_1', 'key', 'sealed', record.eraseAt))
    expect(await store.idempotency.find('ag_1', 'key')).toEqual({ ...record, sealedReply: 'sealed' })
    await done(...store.tokens.tidy(record.eraseAt))
    expect(await store.idempotency.find('ag_1', 'key')).toEqual(record)
    expect(await store.tokens.isRevoked('j')).toBe(false)
    await done(...store.tokens.tidy(record.expiresAt))
    expect(await store.idempotency.find('ag_1', 'key')).toBeUndefined()
  })
})
