import { expect, test } from 'vitest'
import type { RecordedRequest } from '../../../../src/client/wire.ts'
import { againAfter, factsOf, lookOf, replyOf, sinceStart, targetOf, took, wordOf } from './requests.ts'

const REQUEST: RecordedRequest = {
  at: '2026-11-21T10:16:03.400Z',
  protocol: 'http',
  method: 'POST',
  authority: 'api.github.com',
  path: '/repos/acme/shop/issues/*',
  status: 201,
  bytes_sent: 1_536,
  bytes_received: 12,
  duration_ms: 250,
  decision: 'injected',
  reason: null,
  backend: 'github',
  credential_id: 'cred_06dzw5k9q2v6x1m8t3c7n4p0hb',
  placeholder: 'github.token',
  redacted: 0,
}

test('says where a request went, with what was sent and how long it took', () => {
  expect(targetOf(REQUEST)).toBe('POST api.github.com/repos/acme/shop/issues/*')
  expect(factsOf(REQUEST)).toEqual(['1.5 KiB out, 12 B in, 250 ms'])
  expect(replyOf(REQUEST)).toBe('201')
  expect(sinceStart(REQUEST, { started_at: '2026-11-21T10:15:00Z' })).toBe('+1m 3s')
})

test('a database and a tunnel have no method, no path and no status', () => {
  const session = { ...REQUEST, method: null, path: null, status: null }
  expect(targetOf({ ...session, protocol: 'postgres', authority: 'db:5432' })).toBe('postgres db:5432')
  expect(replyOf({ ...session, protocol: 'postgres' })).toBe('')
  expect(targetOf({ ...session, protocol: 'tunnel', authority: 'pinned.example.com' })).toBe(
    'tunnel pinned.example.com',
  )
})

test('a request that nobody answered says so, and one that was refused says why', () => {
  expect(replyOf({ ...REQUEST, status: null })).toBe('no reply')
  const refused = { ...REQUEST, status: null, decision: 'refused', reason: 'path_not_allowed' } as const
  expect(replyOf(refused)).toBe('')
  expect(factsOf(refused)[0]).toBe('path_not_allowed')
  expect(factsOf({ ...REQUEST, redacted: 2_000 }).at(-1)).toBe('2,000 masked in the reply')
})

test('only a misused placeholder is red, and a decision of a newer server is shown by its name', () => {
  const looks = (['injected', 'forwarded', 'tunnelled', 'refused', 'misused'] as const).map((decision) =>
    lookOf({ decision }),
  )
  expect(looks).toEqual(['ok', 'off', 'off', 'wait', 'bad'])
  expect(lookOf({ decision: 'delayed' as never })).toBe('off')
  expect(wordOf('delayed')).toBe('delayed')
})

test.each([
  [0.4, '0 ms'],
  [999, '999 ms'],
  [2_500, '2.5 s'],
  [90_000, '1m 30s'],
])('%d ms are shown as %s', (ms, text) => {
  expect(took(ms)).toBe(text)
})

test('a list is read again while its run lives and a minute longer, seldom where it is long', () => {
  const now = Date.parse('2026-11-21T10:20:00Z')
  expect(againAfter({ ended_at: null }, 0, now)).toBe(5_000)
  expect(againAfter({ ended_at: null }, 50, now)).toBe(2_000)
  expect(againAfter({ ended_at: null }, 500, now)).toBe(10_000)
  expect(againAfter({ ended_at: '2026-11-21T10:19:30Z' }, 50, now)).toBe(2_000)
  expect(againAfter({ ended_at: '2026-11-21T10:18:30Z' }, 50, now)).toBe(false)
})
