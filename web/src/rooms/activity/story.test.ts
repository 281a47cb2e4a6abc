import { expect, test } from 'vitest'
import type { AuditEntry } from '../../../../src/client/wire.ts'
import { storyOf } from './story.ts'

const entry = (n: number, action: AuditEntry['action'], more: Partial<AuditEntry> = {}): AuditEntry => ({
  id: `aud_${n}`,
  timestamp: new Date(Date.parse('2026-11-26T12:00:00Z') + n * 60_000).toISOString(),
  action,
  outcome: 'ok',
  agent_id: 'ag_1',
  agent_name: 'ci-build',
  actor: 'ag_1',
  run: null,
  backend: 'orders',
  credential_id: 'cred_1',
  scopes: ['orders:read'],
  ttl: null,
  ip_address: null,
  user_agent: null,
  auth_method: null,
  request_id: null,
  metadata: null,
  details: null,
  ...more,
})
const told = (entries: readonly AuditEntry[]) =>
  storyOf(entries).map(({ title, text, after }) => [title, text, after])

test('a life is told oldest first, with the time between', () => {
  const life = [
    entry(9, 'credential.settled', { actor: 'system', details: { state: 'revoked' } }),
    entry(5, 'credential.revoked', { actor: 'operator:alice@example.com', ip_address: '192.0.2.7' }),
    entry(0, 'credential.requested', { ttl: '10m', ip_address: '192.0.2.1' }),
    entry(6, 'credential.revoke_failed', {
      outcome: 'failed',
      details: { attempts: 1, stuck: false, code: 'backend_timeout' },
    }),
    entry(7, 'credential.revoke_failed', {
      outcome: 'failed',
      details: { attempts: 6, stuck: true, code: 'backend_error' },
    }),
    entry(1, 'credential.issued'),
  ]
  expect(told(life)).toEqual([
    ['Requested by ci-build', 'From 192.0.2.1. For 10m, with orders:read.', ''],
    ['Issued to ci-build at orders', 'With orders:read.', '1m'],
    ['Revoked by alice@example.com', 'From 192.0.2.7.', '4m'],
    ['The upstream did not end it', 'backend_timeout. Mayfly goes on trying.', '1m'],
    ['Stuck: the upstream has not ended it after 6 tries', 'backend_error. Mayfly goes on trying.', '1m'],
    ['Settled', 'Nothing of it is left at the upstream.', '2m'],
  ])
  expect(storyOf(life).map(({ look }) => look)).toEqual(['ok', 'ok', 'off', 'bad', 'bad', 'off'])
})

test.each([
  ['agent_deleted', 'Its agent was deleted.'],
  ['undelivered', 'The agent had hung up before the answer, so nobody received it.'],
  ['a_reason_of_a_newer_server', 'a_reason_of_a_newer_server'],
])('an end that nobody asked for says why: %s', (reason, text) => {
  expect(told([entry(0, 'credential.revoked', { actor: 'system', details: { reason } })])).toEqual([
    ['Revoked', text, ''],
  ])
})

test('all of an agent ended by an operator reads as their act', () => {
  const one = entry(0, 'credential.revoked', { actor: 'operator:a@b.c', details: { reason: 'revoked' } })
  expect(told([one])).toEqual([['Revoked by a@b.c', '', '']])
})

test('an action that is not in the story has its words', () => {
  expect(told([entry(0, 'token.refused', { outcome: 'denied' })])[0]?.[0]).toBe('Access token refused')
  expect(storyOf([entry(0, 'new.action' as never)])[0]?.title).toBe('new.action')
})

test('nothing has no story', () => {
  expect(storyOf([])).toEqual([])
})
