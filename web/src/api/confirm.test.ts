import { expect, test, vi } from 'vitest'
import {
  askedIn,
  cancelAll,
  confirmed,
  firstWaiting,
  NotConfirmed,
  onConfirmed,
  tellConfirmed,
} from './confirm.ts'

const SSO = { provider: 'Company', challenge: 'abc', url: 'https://mayfly.test/console/sso?confirm=abc' }
const refusal = (options: unknown, code = 'confirmation_required') =>
  JSON.stringify({ error: { code, options } })

test('the refusal says what confirms: a passkey, another login, or nothing', () => {
  expect(askedIn(refusal({ challenge: 'abc' }))).toEqual({ by: 'passkey', options: { challenge: 'abc' } })
  expect(askedIn(refusal({ sso: SSO }))).toEqual({ by: 'sso', ...SSO })
  for (const text of [
    '',
    'null',
    '[]',
    '7',
    '{"error":null}',
    '{"error":7}',
    '<html>',
    refusal({}),
    refusal(null),
  ])
    expect(askedIn(text), text).toBe(undefined)
  expect(askedIn(refusal({ challenge: 'abc' }, 'not_allowed'))).toBe(undefined)
})

test('requests wait one after the other, each for its own challenge, and a person may cancel', async () => {
  const [first, second] = ['one', 'two'].map((challenge) => confirmed({ by: 'sso', ...SSO, challenge }))
  expect(firstWaiting()?.challenge).toBe('one')
  firstWaiting()?.cancel()
  await expect(first).rejects.toThrow(NotConfirmed)
  expect(firstWaiting()?.challenge).toBe('two')
  firstWaiting()?.confirm()
  expect(Buffer.from((await second) ?? '', 'base64url').toString()).toBe('{"sso":{"challenge":"two"}}')
  expect(firstWaiting()).toBe(undefined)
  const third = confirmed({ by: 'sso', ...SSO })
  cancelAll()
  await expect(third).rejects.toThrow(NotConfirmed)
})

test('a tab hears of its own challenge from another, and of no other', async () => {
  const heard = vi.fn()
  const stop = onConfirmed('abc', heard)
  tellConfirmed('other')
  tellConfirmed('abc')
  await vi.waitFor(() => expect(heard).toHaveBeenCalled())
  stop()
  expect(heard).toHaveBeenCalledTimes(1)
})
