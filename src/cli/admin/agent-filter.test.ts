import { expect, test } from 'vitest'
import type { Agent } from '../../client/wire.ts'
import { agentFilter } from './agent-filter.ts'

const NOW = Date.parse('2026-03-10T12:00:00.000Z')
const agent = (facts: Partial<Agent> = {}): Agent => ({
  id: 'agent_1',
  name: 'ci-42-linux',
  scopes: ['orders:read'],
  created_at: '2026-01-01T00:00:00.000Z',
  owner: 'local',
  live: 0,
  last_used: null,
  last_used_from: null,
  signing_key_id: '3AA5C34371567BD2',
  expires_at: null,
  policy: null,
  ...facts,
})
const matches = async (facts: Partial<Agent>, options: object, pattern?: string) =>
  (await agentFilter(options, pattern, NOW))?.(agent(facts))

test('without conditions there is no filter', async () => {
  expect(await agentFilter({}, undefined, NOW)).toBeUndefined()
})

test.each([
  ['ci-42-linux', true],
  ['CI-42-Linux', true],
  ['ci-*', true],
  ['*linux', true],
  ['*42*', true],
  ['ci-*-*x', true],
  ['*', true],
  ['agent_1', true],
  ['ci', false],
  ['ci-42-linux*linux', false],
  ['ci-4.*', false],
  ['x*', false],
  ['*ci-42-linux-*', false],
])('the pattern %s: %s', async (pattern, expected) => {
  expect(await matches({}, {}, pattern)).toBe(expected)
})

test('a pattern of many stars takes no time', async () => {
  const name = `a${'b'.repeat(126)}`
  expect(await matches({ name }, {}, `a${'*b'.repeat(126)}*c`)).toBe(false)
})

test.each([
  ['orders:read', 'orders', true],
  ['orders:read', 'ORDERS', true],
  ['ord*', 'orders', true],
  ['*', 'orders', true],
  ['orders', 'orders', true],
  ['orders2:read', 'orders', false],
  ['admin:*', 'orders', false],
])('the scope %s reaches the backend %s: %s', async (scope, backend, expected) => {
  expect(await matches({ scopes: [scope] }, { backend })).toBe(expected)
})

test('one that was never used counts from when it was made', async () => {
  expect(await matches({}, { unusedFor: '30d' })).toBe(true)
  expect(await matches({ created_at: '2026-03-10T11:00:00.000Z' }, { unusedFor: '2h' })).toBe(false)
  expect(await matches({ last_used: '2026-03-10T11:00:00.000Z' }, { unusedFor: '30m' })).toBe(true)
  expect(await matches({ last_used: '2026-03-10T11:00:00.000Z' }, { unusedFor: '2h' })).toBe(false)
})

test('one without an expiry does not expire', async () => {
  expect(await matches({}, { expiresWithin: '7d' })).toBe(false)
  expect(await matches({ expires_at: '2026-03-11T00:00:00.000Z' }, { expiresWithin: '7d' })).toBe(true)
  expect(await matches({ expires_at: '2026-04-11T00:00:00.000Z' }, { expiresWithin: '7d' })).toBe(false)
})

test.each([
  ['unusedFor', '--unused-for'],
  ['expiresWithin', '--expires-within'],
])('a wrong %s names the flag', async (key, name) => {
  await expect(agentFilter({ [key]: 'soon' }, undefined, NOW)).rejects.toThrow(name)
})

test('every condition must hold', async () => {
  expect(await matches({}, { backend: 'orders', unusedFor: '1d' }, 'ci-*')).toBe(true)
  expect(await matches({}, { backend: 'other', unusedFor: '1d' }, 'ci-*')).toBe(false)
})
