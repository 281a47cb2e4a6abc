import { describe, expect, test } from 'vitest'
import { DIALECTS, newOperator, newPasskey, newSession, T0 } from '../support/store.ts'
import { useStore } from '../support/use-store.ts'

describe.each(DIALECTS)('people on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done } = opened
  const refusedAt = (step: number, reason = 'rows') => ({ done: false, step, reason })

  test('an address belongs to one operator at a time, and is free again when they end', async () => {
    const { operators } = opened.store
    const alice = newOperator()
    await done(operators.insert(alice))
    expect(await operators.findByEmail(alice.email ?? '')).toEqual(alice)
    const other = newOperator({ email: alice.email })
    expect(await commit([operators.insert(other)])).toEqual(refusedAt(0, 'unique'))
    await done(...operators.end(alice, T0))
    expect(await operators.findLiving(alice.id)).toBeUndefined()
    await done(operators.insert(other))
    expect(await operators.findByEmail(alice.email ?? '')).toEqual(other)
    expect((await operators.list(alice.id, 10)).map(({ id }) => id)).toContain(other.id)
  })

  test('of two logins that saw the same number, the second is refused', async () => {
    const { operators } = opened.store
    const alice = newOperator()
    await done(operators.insert(alice), operators.logIn(alice, T0))
    expect(await commit([operators.logIn(alice, T0 + 1)])).toEqual(refusedAt(0))
    const now = await operators.findLiving(alice.id)
    expect(now).toEqual({ ...alice, logins: 1, joinedAt: T0, lastLoginAt: T0 })
    await done(operators.logIn(now ?? alice, T0 + 2))
    expect(await operators.findLiving(alice.id)).toMatchObject({ joinedAt: T0, lastLoginAt: T0 + 2 })
    expect((await operators.joined()).map(({ id }) => id)).toContain(alice.id)
  })

  test('a change of an operator is noticed by the commits of their sessions', async () => {
    const { operators, sessions } = opened.store
    const alice = newOperator()
    const session = newSession(alice.id)
    await done(operators.insert(alice), sessions.insert(session), sessions.requireUnchanged(session))
    await done(...operators.change(alice, { name: 'A', scopes: ['admin:audit:read'], backendScopes: [] }))
    expect(await commit([sessions.requireUnchanged(session)])).toEqual(refusedAt(0))
    expect(await sessions.findBySecret(session.secretHash)).toEqual({ ...session, version: 2 })
    expect(await commit([operators.requireUnchanged(alice)])).toEqual(refusedAt(0))
    expect(await operators.findLiving(alice.id)).toMatchObject({ name: 'A', version: 2, backendScopes: [] })
  })

  test('the end of an operator takes passkeys, sessions and links along', async () => {
    const { operators, sessions } = opened.store
    const alice = newOperator()
    const [session, passkey] = [newSession(alice.id), newPasskey(alice.id)]
    const link = {
      secretHash: `link ${alice.id}`,
      kind: 'invitation',
      operatorId: alice.id,
      createdAt: T0,
      createdBy: 'local',
      expiresAt: T0 + 1,
    } as const
    await done(operators.insert(alice), sessions.insert(session), operators.addPasskey(passkey))
    await done(sessions.addLink(link))
    expect(await sessions.findLink(link.secretHash)).toEqual(link)
    await done(...operators.end(alice, T0))
    expect(await sessions.find(session.id)).toBeUndefined()
    expect(await operators.passkeysOf(alice.id)).toEqual([])
    expect(await sessions.findLink(link.secretHash)).toBeUndefined()
  })

  test('a passkey takes the sessions along that it started, and counts up only', async () => {
    const { operators, sessions } = opened.store
    const alice = newOperator()
    const passkey = newPasskey(alice.id)
    const [mine, other] = [newSession(alice.id, { passkeyId: passkey.id }), newSession(alice.id)]
    await done(operators.insert(alice), operators.addPasskey(passkey))
    await done(sessions.insert(mine), sessions.insert(other))
    const copy = newPasskey(alice.id, { credentialId: passkey.credentialId })
    expect(await commit([operators.addPasskey(copy)])).toEqual(refusedAt(0, 'unique'))
    await done(operators.usePasskey(passkey, { counter: 5, backup: 'backed_up', at: T0 }))
    const again = operators.usePasskey(passkey, { counter: 6, backup: 'none', at: T0 })
    expect(await commit([again])).toEqual(refusedAt(0))
    expect(await operators.findPasskey(passkey.credentialId)).toEqual({
      ...passkey,
      counter: 5,
      backup: 'backed_up',
      lastUsedAt: T0,
    })
    expect((await sessions.startedBy(passkey.id, alice.id)).map(({ id }) => id)).toEqual([mine.id])
    await done(...operators.removePasskey(passkey.id))
    expect((await sessions.of(alice.id)).map(({ id }) => id)).toEqual([other.id])
    expect(await commit(operators.removePasskey(passkey.id))).toEqual(refusedAt(0))
  })

  test('counts the passkeys of other relying parties', async () => {
    const { operators } = opened.store
    const before = await operators.countPasskeysBeside('mayfly.test')
    await done(operators.addPasskey(newPasskey('op_x', { rpId: 'old.test' })))
    expect(await operators.countPasskeysBeside('mayfly.test')).toBe(before + 1)
  })

  test('a session expires unless it was used since, and registers one passkey in its time', async () => {
    const { sessions } = opened.store
    const session = newSession('op_y', { lastUsedAt: T0, expiresAt: T0 + 9_000, mayRegisterUntil: T0 + 10 })
    await done(sessions.insert(session))
    expect((await sessions.expired(T0, T0, 100)).map(({ id }) => id)).toContain(session.id)
    await done(sessions.recordUse(session.id, T0 + 5), sessions.recordUse(session.id, T0 + 1))
    expect(await sessions.find(session.id)).toMatchObject({ lastUsedAt: T0 + 5 })
    expect(await commit([sessions.expire(session.id, T0, T0)])).toEqual(refusedAt(0))
    expect(await commit([sessions.useRegistration(session.id, T0 + 10)])).toEqual(refusedAt(0))
    await done(sessions.useRegistration(session.id, T0 + 9))
    expect(await commit([sessions.useRegistration(session.id, T0 + 9)])).toEqual(refusedAt(0))
    await done(sessions.expire(session.id, T0 + 9_000, T0))
    expect(await commit([sessions.end(session.id)])).toEqual(refusedAt(0))
  })

  test('links and challenges work once, and are forgotten when they have expired', async () => {
    const { sessions, tokens } = opened.store
    const link = { kind: 'first', operatorId: null, createdAt: T0, createdBy: 'local' } as const
    await done(sessions.addLink({ ...link, secretHash: 'one', expiresAt: T0 + 1 }))
    await done(sessions.addLink({ ...link, secretHash: 'two', expiresAt: T0 + 1 }))
    await done(sessions.useLink('one'))
    expect(await commit([sessions.useLink('one')])).toEqual(refusedAt(0))
    const challenge = {
      challenge: 'c',
      purpose: 'confirm',
      sessionId: 'ses_x',
      nonce: 'n',
      madeAt: T0,
      expiresAt: T0 + 1,
      answer: null,
    } as const
    await done(sessions.addChallenge(challenge))
    expect(await sessions.findChallenge('c')).toEqual(challenge)
    await done(sessions.useChallenge('c'))
    expect(await commit([sessions.useChallenge('c')])).toEqual(refusedAt(0))
    await done(sessions.addChallenge(challenge))
    expect(await tokens.isUntidy(T0 + 1)).toBe(true)
    await done(...tokens.tidy(T0 + 1))
    expect(await sessions.findLink('two')).toBeUndefined()
    expect(await sessions.findChallenge('c')).toBeUndefined()
  })
})
