import { describe, expect, test } from 'vitest'
import { END_REASONS, endState, mayBecome, STATES, type State, statusAt, TRANSITIONS } from './credential.ts'

test('the table of transitions is the documented one and nothing else', () => {
  const allowed = new Set([
    'pending active',
    'pending failed',
    'pending revoking',
    'active revoking',
    'active revoked',
    'active expired',
    'revoking revoked',
    'revoking expired',
    'revoked revoking',
  ])
  for (const from of STATES) {
    for (const to of STATES) expect(mayBecome(from, to), `${from} ${to}`).toBe(allowed.has(`${from} ${to}`))
  }
})

test('every state is reached from pending, and every way ends', () => {
  const reached = new Set<State>(['pending'])
  for (const state of reached) for (const next of TRANSITIONS[state]) reached.add(next)
  expect([...reached].sort()).toEqual([...STATES].sort())
  // But for the one way back, of an issue that was settled too early.
  const onward = (state: State): readonly State[] => (state === 'revoked' ? [] : TRANSITIONS[state])
  const depth = (state: State): number => Math.max(0, ...onward(state).map((next) => 1 + depth(next)))
  expect(depth('pending')).toBe(3)
})

test('only expiry ends a credential as expired', () => {
  for (const reason of END_REASONS)
    expect(endState(reason)).toBe(reason === 'expired' ? 'expired' : 'revoked')
})

describe('the status that callers see', () => {
  test.each<[State, number, (typeof END_REASONS)[number] | null, string]>([
    ['active', 101, null, 'active'],
    ['active', 100, null, 'expired'],
    ['active', 99, null, 'expired'],
    ['pending', 101, null, 'revoked'],
    ['failed', 101, null, 'revoked'],
    ['revoked', 99, 'revoked', 'revoked'],
    ['expired', 101, 'expired', 'expired'],
    ['revoking', 101, 'revoked', 'revoked'],
    ['revoking', 99, 'expired', 'expired'],
    ['revoking', 101, 'agent_deleted', 'revoked'],
    ['revoking', 99, null, 'revoked'],
  ])('%s that ends at %d for %s', (state, expiresAt, reason, status) => {
    expect(statusAt(state, expiresAt, reason, 100)).toBe(status)
  })
  test('ended never looks active, at any time', () => {
    for (const state of STATES.filter((one) => one !== 'active')) {
      for (const reason of [...END_REASONS, null]) {
        expect(statusAt(state, Number.MAX_SAFE_INTEGER, reason, 0)).not.toBe('active')
      }
    }
  })
})
