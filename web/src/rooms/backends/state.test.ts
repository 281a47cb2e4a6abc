import { expect, test } from 'vitest'
import type { Backend } from '../../../../src/client/wire.ts'
import { byKind, matching, needsPerson, secretDue, statesOf } from './state.ts'

const NOW = Date.parse('2026-11-26T12:00:00Z')
const ago = (ms: number) => new Date(NOW - ms).toISOString()

function backend(over: Partial<Backend> = {}, health: Partial<NonNullable<Backend['health']>> = {}): Backend {
  return {
    id: 'orders',
    name: 'orders',
    type: 'postgres',
    default_ttl: '1h',
    max_ttl: '24h',
    revocation: 'exact',
    scope_forms: [],
    created_at: ago(0),
    config: {},
    live: 0,
    health: {
      state: 'up',
      last_success: ago(1_000),
      last_failure: null,
      last_failure_reason: null,
      breakers: { issuing: 'closed', revoking: 'closed' },
      ...health,
    },
    ...over,
  }
}
const words = (one: Backend) => statesOf(one, NOW).map((state) => `${state.look} ${state.words}`)

test('a backend that works, or was never used, needs nobody', () => {
  expect(words(backend())).toEqual(['ok works'])
  expect(words(backend({}, { state: 'unknown' }))).toEqual(['off not used yet'])
  const { health: _, ...bare } = backend()
  expect(words(bare)).toEqual(['off not used yet'])
  expect(needsPerson(backend(), NOW)).toBe(false)
})

test('what failed stands before what is waited for, and says why', () => {
  const bad = backend(
    { unended: { count: 3, since: ago(60_000) }, deletion: { since: ago(1), remaining: 3 } },
    {
      state: 'down',
      last_failure_reason: 'permission_missing',
      breakers: { issuing: 'open', revoking: 'open' },
    },
  )
  expect(words(bad)).toEqual([
    'bad down: permission missing',
    'bad 3 not ended',
    'wait being deleted',
    'wait issuing is paused',
    'wait ending is paused',
  ])
  expect(words(backend({ broken: true }, { state: 'down', last_failure_reason: 'misconfigured' }))).toEqual([
    'bad cannot be opened',
  ])
})

test('a secret is old at the age that was set, and never without one', () => {
  const since = ago(90 * 86_400_000)
  expect(words(backend({ rotate_root_after: '2160h' }, { secret_since: since }))).toEqual([
    'wait its secret is old',
  ])
  expect(words(backend({ rotate_root_after: '2161h' }, { secret_since: since }))).toEqual(['ok works'])
  expect(words(backend({}, { secret_since: since }))).toEqual(['ok works'])
  expect(secretDue(backend({ rotate_root_after: '1h' }))).toBeNull()
})

test('the filters of the address all have to fit', () => {
  const down = backend({ name: 'shop', type: 'redis', description: 'Orders of the shop' }, { state: 'down' })
  const all = [backend(), down, backend({ name: 'stuck', unended: { count: 1, since: ago(1) } })]
  const names = (wanted: Parameters<typeof matching>[1]) => matching(all, wanted, NOW).map(({ name }) => name)
  expect(names({})).toEqual(['orders', 'shop', 'stuck'])
  expect(names({ q: 'ORDERS' })).toEqual(['orders', 'shop'])
  expect(names({ q: 'orders', kind: 'redis' })).toEqual(['shop'])
  expect(names({ state: 'attention' })).toEqual(['shop', 'stuck'])
  expect(names({ state: 'down' })).toEqual(['shop'])
  expect(names({ state: 'unended' })).toEqual(['stuck'])
  expect(names({ state: 'no such state' })).toEqual(['orders', 'shop', 'stuck'])
  expect(names({ q: '.*' })).toEqual([])
})

test('groups are in the order of their kinds', () => {
  const all = [backend({ type: 'redis' }), backend({ type: 'aws' }), backend({ type: 'redis', name: 'b' })]
  expect(byKind(all).map(([type, rows]) => [type, rows.length])).toEqual([
    ['aws', 1],
    ['redis', 2],
  ])
})
