import { expect, test } from 'vitest'
import type { AuditEntry } from '../../../../src/client/wire.ts'
import { commandOf, type Filters, isAgentName, matches, mergeEntries, placeAfter, queryOf } from './query.ts'

const NONE: Filters = {
  agent: undefined,
  actor: undefined,
  backend: undefined,
  action: undefined,
  credential: undefined,
  run: undefined,
  since: undefined,
  until: undefined,
}
const ENTRY = {
  id: 'aud_1',
  agent_id: 'ag_1',
  agent_name: 'CI-build',
  actor: 'ag_1',
  backend: 'orders',
  action: 'credential.issued',
  credential_id: 'cred_1',
  run: 'run_1',
} as AuditEntry

test('the query has the filters that are set, in one order', () => {
  expect(queryOf({ ...NONE, since: '1h', agent: 'ci' })).toEqual({ agent: 'ci', since: '1h' })
  expect(queryOf(NONE)).toEqual({})
})

test('the command quotes what a shell would read', () => {
  const odd = "a'; rm -rf $HOME"
  expect(commandOf({ ...NONE, agent: odd, since: '2026-11-26T12:00:00Z' })).toBe(
    `mayfly audit --agent 'a'\\''; rm -rf $HOME' --since 2026-11-26T12:00:00Z`,
  )
  expect(commandOf(NONE, true)).toBe('mayfly audit --follow')
})

test.each([
  [{}, true],
  [{ agent: 'ci-BUILD' }, true],
  [{ agent: 'ag_1' }, true],
  [{ agent: 'other' }, false],
  [{ actor: 'ag_1' }, true],
  [{ actor: 'local' }, false],
  [{ backend: 'Orders' }, true],
  [{ backend: 'orders2' }, false],
  [{ action: 'credential.issued', credential: 'cred_1' }, true],
  [{ action: 'credential.issued', credential: 'cred_2' }, false],
  [{ action: 'credential.revoked' }, false],
  [{ run: 'run_1' }, true],
  [{ run: 'run_2' }, false],
] as [Partial<Filters>, boolean][])('an entry as it happens belongs to the list: %j is %s', (filters, is) => {
  expect(matches(ENTRY, { ...NONE, ...filters })).toBe(is)
})

test('people of single sign-on are told apart by the case of their subject, and those with an address are not', () => {
  const by = (actor: string, filter: string) => matches({ ...ENTRY, actor }, { ...NONE, actor: filter })
  const carol = 'operator:https://login.example.com#Carol'
  expect([by(carol, carol), by(carol, carol.toLowerCase())]).toEqual([true, false])
  expect(by('operator:carol@example.com', 'operator:Carol@example.com')).toBe(true)
})

test('an agent that acts is found by the id of its name', () => {
  expect(matches(ENTRY, { ...NONE, actor: 'ci-build' })).toBe(false)
  expect(matches(ENTRY, { ...NONE, actor: 'ci-build' }, 'ag_1')).toBe(true)
  expect(['ci', 'operator:a@b.c', 'local', 'System', 'ag_1', undefined].map(isAgentName)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ])
})

test('the place after an entry is the next id', () => {
  expect(placeAfter('aud_06dzq5t9w3k7n1c6v4x8m2p0hd')).toBe('06dzq5t9w3k7n1c6v4x8m2p0he')
  expect(placeAfter('aud_06dzq5t9w3k7n1c6v4x8m2p0hz')).toBe('06dzq5t9w3k7n1c6v4x8m2p0j0')
  expect(placeAfter(`aud_0${'z'.repeat(25)}`)).toBe(`1${'0'.repeat(25)}`)
})

test.each([
  `aud_7${'z'.repeat(25)}`,
  `aud_8${'0'.repeat(25)}`,
  'aud_',
  '',
  'cred_06dzq5t9w3k7n1c6v4x8m2p0hd',
  'aud_06dzq5t9w3k7n1c6v4x8m2p0hu',
  `aud_06dzq5t9w3k7n1c6v4x8m2p0hd\n`,
])('%j is no entry, or has none after it', (id) => {
  expect(placeAfter(id)).toBeUndefined()
})

test('entries are merged newest first, and each is there once', () => {
  const of = (...ids: string[]) => ids.map((id) => ({ id }))
  expect(mergeEntries(of('c', 'b', 'd'), of('b', 'a'))).toEqual(of('d', 'c', 'b', 'a'))
  expect(mergeEntries([], of('b', 'a'))).toEqual(of('b', 'a'))
})
