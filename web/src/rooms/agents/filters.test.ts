import { expect, test } from 'vitest'
import type { Agent } from '../../../../src/client/wire.ts'
import { type Filters, isShown } from './filters.ts'

const now = Date.parse('2026-11-26T12:00:00Z')
const none: Filters = { name: undefined, policy: undefined, backend: undefined, show: undefined }
const agent = {
  name: 'ci-Build',
  scopes: ['orders:read', 'pay*:x'],
  created_at: '2026-10-01T12:00:00.000Z',
  last_used: '2026-11-26T11:00:00.000Z',
  expires_at: '2026-12-01T12:00:00.000Z',
  policy: 'ci',
  owner: 'operator:alice@example.com',
  live: 0,
} as Agent
const shows = (filters: Partial<Filters>, one: Partial<Agent> = {}) =>
  isShown({ ...agent, ...one }, { ...none, ...filters }, now)

test('a name, an owner or a description matches by a part, whatever its case', () => {
  expect(shows({})).toBe(true)
  expect(shows({ name: 'BUILD' })).toBe(true)
  expect(shows({ name: 'alice' })).toBe(true)
  expect(shows({ name: 'bob' })).toBe(false)
})

test('a policy matches whole, a backend by the first part of a scope', () => {
  expect(shows({ policy: 'ci' })).toBe(true)
  expect(shows({ policy: 'c' })).toBe(false)
  expect(shows({ backend: 'orders' })).toBe(true)
  expect(shows({ backend: 'payments' })).toBe(true)
  expect(shows({ backend: 'order' })).toBe(false)
})

test('those that end soon, are unused, or hold something', () => {
  expect(shows({ show: 'ending' })).toBe(true)
  expect(shows({ show: 'ending' }, { expires_at: null })).toBe(false)
  expect(shows({ show: 'ending' }, { expires_at: '2026-12-04T12:00:00.000Z' })).toBe(false)
  expect(shows({ show: 'unused' })).toBe(false)
  expect(shows({ show: 'unused' }, { last_used: null })).toBe(true)
  expect(shows({ show: 'unused' }, { last_used: null, created_at: '2026-11-20T12:00:00.000Z' })).toBe(false)
  expect(shows({ show: 'holding' })).toBe(false)
  expect(shows({ show: 'holding' }, { live: 2 })).toBe(true)
  // A link of a later version: nothing is hidden by a filter that is not known.
  expect(shows({ show: 'other' })).toBe(true)
})
