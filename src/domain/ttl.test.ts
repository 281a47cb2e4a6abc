import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatDuration } from './duration.ts'
import { decideLifetime, type TtlRule } from './ttl.ts'

const NOW = 1_800_000_000_000
const rule: TtlRule = { defaultTtlMs: 3_600_000, maxTtlMs: 86_400_000 }

test.each<[string, string | undefined, Partial<TtlRule>, number | null, number, number]>([
  ['the default', undefined, {}, null, 3_600_000, 3_600_000],
  ['as asked', '10m', {}, null, 600_000, 600_000],
  ['just the longest', '24h', {}, null, 86_400_000, 86_400_000],
  ['a default above the longest', undefined, { maxTtlMs: 60_000 }, null, 60_000, 60_000],
  ['a default above the policy', undefined, { agentMaxTtlMs: 60_000 }, null, 60_000, 60_000],
  ['just the least', '15m', { minTtlMs: 900_000 }, null, 900_000, 900_000],
  ['the agent ends earlier', '10m', {}, NOW + 5_000, 600_000, 5_000],
  ['the agent ends later', '10m', {}, NOW + 600_001, 600_000, 600_000],
])('%s', (_, asked, change, agentEnd, ttlMs, lasts) => {
  expect(decideLifetime(asked, { ...rule, ...change }, agentEnd, NOW)).toEqual({
    ttlMs,
    expiresAt: NOW + lasts,
  })
})

test.each<[string, string, Partial<TtlRule>, string, RegExp]>([
  ['one ms too long', '24h1ms', {}, 'ttl_exceeded', /24h/],
  ['absurd', `${'9'.repeat(100)}w`, {}, 'ttl_exceeded', /24h/],
  ['longer than the policy', '2h', { agentMaxTtlMs: 3_600_000 }, 'ttl_exceeded', /1h/],
  ['a policy does not widen the backend', '25h', { agentMaxTtlMs: 1e12 }, 'ttl_exceeded', /24h/],
  ['too short for the kind', '14m59s', { minTtlMs: 900_000 }, 'invalid_request', /15m/],
  ['zero', '0s', {}, 'invalid_request', /"ttl"/],
  ['negative', '-1h', {}, 'invalid_request', /"ttl"/],
  ['a number', '3600', {}, 'invalid_request', /"ttl"/],
  ['empty', '', {}, 'invalid_request', /"ttl"/],
])('refuses: %s', (_, asked, change, code, message) => {
  expect(() => decideLifetime(asked, { ...rule, ...change }, null, NOW)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  )
})

test('never longer than asked, allowed, or the agent', () => {
  const ms = fc.integer({ min: 1, max: 1e12 })
  fc.assert(
    fc.property(ms, ms, ms, ms, (asked, longest, policy, agent) => {
      const bounds = { defaultTtlMs: 1, maxTtlMs: longest, agentMaxTtlMs: policy }
      const decide = () => decideLifetime(formatDuration(asked), bounds, NOW + agent, NOW)
      if (asked > Math.min(longest, policy))
        expect(decide).toThrow(expect.objectContaining({ code: 'ttl_exceeded' }))
      else expect(decide()).toEqual({ ttlMs: asked, expiresAt: NOW + Math.min(asked, agent) })
    }),
  )
})
