import { formatDuration, requireDuration } from './duration.ts'
import { Problem } from './problems.ts'

export interface TtlRule {
  defaultTtlMs: number
  maxTtlMs: number
  /** The kind's own minimum, for example 15 minutes for STS. */
  minTtlMs?: number | undefined
  /** A policy's bound on the agent. */
  agentMaxTtlMs?: number | undefined
}

export interface Lifetime {
  /** The requested lifetime in ms. */
  ttlMs: number
  /** Epoch ms: the earliest of now + ttl and the agent's own end. */
  expiresAt: number
}

/** decisions.md §4.1. Throws `invalid_request` or `ttl_exceeded`; never clamps a requested ttl. */
export function decideLifetime(
  asked: string | undefined,
  rule: TtlRule,
  agentExpiresAt: number | null,
  now: number,
): Lifetime {
  const longest = Math.min(rule.maxTtlMs, rule.agentMaxTtlMs ?? Number.POSITIVE_INFINITY)
  const ttlMs = asked === undefined ? Math.min(rule.defaultTtlMs, longest) : requireDuration(asked, 'ttl')
  if (ttlMs > longest) {
    throw new Problem('ttl_exceeded', {
      message: `The requested ttl is longer than the maximum of ${formatDuration(longest)}.`,
    })
  }
  if (rule.minTtlMs !== undefined && ttlMs < rule.minTtlMs) {
    throw new Problem('invalid_request', {
      message: `This backend cannot issue for less than ${formatDuration(rule.minTtlMs)}.`,
    })
  }
  return { ttlMs, expiresAt: Math.min(now + ttlMs, agentExpiresAt ?? Number.POSITIVE_INFINITY) }
}
