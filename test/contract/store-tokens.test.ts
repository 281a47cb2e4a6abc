import { beforeAll, describe, expect, test } from 'vitest'
import type { Step } from '../../src/store/engine/change.ts'
import { agentRow, auditRow, DIALECTS, issuerKey, newBody, newEnrollment, T0 } from '../support/store.ts'
import { useStore } from '../support/use-store.ts'

describe.each(DIALECTS)('enrollments and tokens on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done } = opened
  test('decides and collects an enrollment once', async () => {
    const { store } = opened
    const row = newEnrollment({ scopes: ['a:b'], metadata: { run: 7 }, publicJwk: { kty: 'OKP' } })
    await done(store.enrollments.insert(row))
    expect(await store.enrollments.pendingAddresses(9)).toEqual([row.ipAddress])
    expect(await store.enrollments.countAmendments(9)).toBe(0)
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
    const key = issuerKey({ publicJwk: { kty: 'RSA' } })
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
    await done(store.tokens.revoke('j', T0 + 5))
    expect(await store.tokens.isRevoked('j')).toBe(true)
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
  describe('a change by an access token', () => {
    const agent = agentRow()
    const kid = newBody()
    const far = Date.now() + 3_600_000
    const token: Step = { op: 'token', jti: 'good', kid, agentId: agent.id, expiresAt: far }
    const entry = (): Step => ({ op: 'insert', table: 'audit', row: auditRow() })
    const key = (kid: string, retiresAt: number | null) =>
      opened.store.tokens.insertIssuerKey(issuerKey({ kid, retiresAt }))
    beforeAll(async () => {
      const retired = [key('retired', Date.now() - 1_000), key('retiring', far)]
      await done({ op: 'insert', table: 'agents', row: agent }, key(kid, null), ...retired)
      await done(opened.store.tokens.revoke('bad', far))
    })

    // What only guards and inserts is merged on PostgreSQL; the other has its own transaction.
    const SHAPES: [string, () => Step[]][] = [
      ['inserts', () => [entry()]],
      ['updates', () => [...opened.store.tokens.tidy(0), entry()]],
    ]
    describe.each(SHAPES)('that %s', (_, steps) => {
      test('is committed while the token is valid', async () => {
        await done(token, ...steps())
        await done({ ...token, kid: 'retiring' }, ...steps())
        const guard: Step = { op: 'guard', table: 'agents', id: agent.id, version: 1 }
        await done(token, guard, ...steps())
        expect(await commit([token, { ...guard, version: 2 }, ...steps()])).toMatchObject({ step: 1 })
      })

      test.each([
        ['is revoked', { jti: 'bad' }],
        ['has expired', { expiresAt: Date.now() - 1 }],
        ['has a key that is unknown', { kid: 'unknown' }],
        ['has a key that is retired', { kid: 'retired' }],
        ['has an agent that is unknown', { agentId: 'ag_none' }],
      ])('is refused once the token %s, and spoils no other', async (__, change) => {
        const outcomes = await Promise.all([
          commit([token, ...steps()]),
          commit([{ ...token, ...change }, ...steps()]),
          commit([token, ...steps()]),
        ])
        const refused = { done: false, step: 0, reason: 'guard' }
        expect(outcomes).toEqual([{ done: true }, refused, { done: true }])
      })
    })
  })
})
