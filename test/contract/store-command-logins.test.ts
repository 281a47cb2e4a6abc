import { describe, expect, test } from 'vitest'
import type { CommandLogin } from '../../src/domain/people/session.ts'
import { DIALECTS, newOperator, newSession, T0 } from '../support/store.ts'
import { useStore } from '../support/use-store.ts'

const LIFE = 600_000
let made = 0
function newLogin(set: Partial<CommandLogin> = {}): CommandLogin {
  made += 1
  return {
    codeHash: `code ${made}`,
    kind: 'device',
    userCodeHash: `user ${made}`,
    state: 'waiting',
    host: 'büro-7',
    ipAddress: '192.0.2.1',
    userAgent: null,
    operatorId: null,
    sessionId: null,
    redirectUri: null,
    codeChallenge: null,
    polledAt: null,
    pollMs: 5_000,
    createdAt: T0,
    expiresAt: T0 + LIFE,
    ...set,
  }
}

describe.each(DIALECTS)('logins of commands on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done } = opened
  const refusedAt = (step: number, reason = 'rows') => ({ done: false, step, reason })
  const allowed = { state: 'allowed', operatorId: 'op_1', sessionId: 'ses_1' } as const

  test('is found by either code, decided on once, and used once', async () => {
    const { commandLogins } = opened.store
    const login = newLogin()
    await done(commandLogins.insert(login))
    expect(await commandLogins.findByCode(login.codeHash)).toEqual(login)
    expect(await commandLogins.findByUserCode(login.userCodeHash ?? '')).toEqual(login)
    const use = commandLogins.use(login, { sessionId: 'ses_2', until: T0 + 9 * LIFE }, T0)
    expect(await commit([use])).toEqual(refusedAt(0))
    await done(commandLogins.decide(login, allowed, T0))
    expect(await commit([commandLogins.decide(login, { ...allowed, state: 'denied' }, T0)])).toEqual(
      refusedAt(0),
    )
    await done(use)
    expect(await commit([use])).toEqual(refusedAt(0))
    expect(await commandLogins.findByCode(login.codeHash)).toEqual({
      ...login,
      state: 'used',
      operatorId: 'op_1',
      sessionId: 'ses_2',
      expiresAt: T0 + 9 * LIFE,
    })
  })

  test('nothing is done with one that has expired, and it is tidied', async () => {
    const { commandLogins, tokens } = opened.store
    const [waiting, ready] = [newLogin(), newLogin(allowed)]
    await done(commandLogins.insert(waiting), commandLogins.insert(ready))
    const late = T0 + LIFE
    const steps = [
      commandLogins.decide(waiting, allowed, late),
      commandLogins.recordPoll(waiting, { now: late, pollMs: 5_000 }),
      commandLogins.use(ready, { sessionId: 'ses_2', until: late }, late),
    ]
    for (const step of steps) expect(await commit([step])).toEqual(refusedAt(0))
    await done(...tokens.tidy(late - 1))
    expect(await commandLogins.findByCode(ready.codeHash)).toEqual(ready)
    expect(await tokens.isUntidy(late)).toBe(true)
    await done(...tokens.tidy(late))
    expect(await commandLogins.findByCode(ready.codeHash)).toBeUndefined()
    expect(await tokens.isUntidy(late)).toBe(false)
  })

  test('a code that is taken is refused, and many have none', async () => {
    const { commandLogins } = opened.store
    const login = newLogin()
    const browser = { kind: 'browser', userCodeHash: null, state: 'allowed' } as const
    await done(commandLogins.insert(login), commandLogins.insert(newLogin(browser)))
    await done(commandLogins.insert(newLogin(browser)))
    const same = newLogin({ userCodeHash: login.userCodeHash })
    expect(await commit([commandLogins.insert(same)])).toEqual(refusedAt(0, 'unique'))
  })

  test('of two polls that saw the same, the second is refused', async () => {
    const { commandLogins } = opened.store
    const login = newLogin()
    await done(commandLogins.insert(login))
    const before = await commandLogins.countWaiting(T0)
    await done(commandLogins.recordPoll(login, { now: T0 + 1, pollMs: 10_000 }))
    expect(await commit([commandLogins.recordPoll(login, { now: T0 + 1, pollMs: 5_000 })])).toEqual(
      refusedAt(0),
    )
    const polled = await commandLogins.findByCode(login.codeHash)
    expect(polled).toEqual({ ...login, polledAt: T0 + 1, pollMs: 10_000 })
    await done(commandLogins.recordPoll(polled ?? login, { now: T0 + 2, pollMs: 10_000 }))
    await done(commandLogins.decide(login, { ...allowed, state: 'denied' }, T0))
    expect(await commandLogins.countWaiting(T0)).toBe(before - 1)
    expect(await commandLogins.countWaiting(T0 + LIFE)).toBe(0)
  })

  test('a command does not end by idleness, and with the session that allowed it if there are as many as were seen', async () => {
    const { operators, sessions } = opened.store
    const alice = newOperator()
    const browser = newSession(alice.id)
    const command = newSession(alice.id, { method: 'device', keyHash: '', allowedBy: browser.id })
    await done(operators.insert(alice), sessions.insert(browser), sessions.insert(command))
    const idle = browser.lastUsedAt
    const over = (await sessions.expired(idle, idle, 1_000)).map(({ id }) => id)
    expect(over).toContain(browser.id)
    expect(over).not.toContain(command.id)
    expect(await commit([sessions.expire(command.id, idle, idle)])).toEqual(refusedAt(0))
    const end = (count: number) => [sessions.end(browser.id), sessions.endAllowedBy(browser.id, count)]
    expect(await commit(end(0))).toEqual(refusedAt(1))
    await done(...end(1))
    expect(await sessions.of(alice.id)).toEqual([])
    const alone = newSession(alice.id, { method: 'browser', keyHash: '', allowedBy: browser.id })
    await done(sessions.insert(alone))
    await done(sessions.expire(alone.id, alone.expiresAt, 0))
  })
})
