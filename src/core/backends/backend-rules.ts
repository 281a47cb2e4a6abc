import type { Kind } from '../../backends/kind.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { DEFAULT_MAX_TTL_MS, DEFAULT_TTL_MS } from '../../domain/limits.ts'
import { parseRate } from '../../domain/policy.ts'
import { invalid } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'

/** The settings that every kind has. An undefined one keeps its value; null removes it. */
export interface BackendRules {
  readonly default_ttl?: string | undefined
  readonly max_ttl?: string | undefined
  readonly allowed_scopes?: readonly string[] | null | undefined
  readonly description?: string | undefined
  readonly rate?: string | null | undefined
  readonly max_active?: number | null | undefined
}

type StoredRules = Pick<
  StoredBackend,
  'defaultTtlMs' | 'maxTtlMs' | 'allowedScopes' | 'description' | 'rate' | 'maxActive'
>

/** The rules as they are stored. Throws `invalid_request`. */
export function readRules(kind: Kind, rules: BackendRules, old: StoredRules | undefined): StoredRules {
  if (rules.allowed_scopes) requireScopes(rules.allowed_scopes, 'allowed_scopes')
  if (rules.rate && parseRate(rules.rate) === undefined)
    throw invalid('"rate" is a number per unit of time, such as 10/hour.')
  return {
    ...readLifetimes(kind, rules, old),
    allowedScopes: given(rules.allowed_scopes, old?.allowedScopes),
    description: given(rules.description, old?.description),
    rate: given(rules.rate, old?.rate),
    maxActive: given(rules.max_active, old?.maxActive),
  }
}

function given<T>(value: T | null | undefined, old: T | null | undefined): T | null {
  return value === undefined ? (old ?? null) : value
}

function readLifetimes(
  { limits }: Kind,
  rules: BackendRules,
  old: StoredRules | undefined,
): Pick<StoredRules, 'defaultTtlMs' | 'maxTtlMs'> {
  const longest = limits.maxTtlMs ?? Number.POSITIVE_INFINITY
  const maxTtlMs =
    rules.max_ttl === undefined
      ? (old?.maxTtlMs ?? Math.min(DEFAULT_MAX_TTL_MS, longest))
      : requireLifetime(rules.max_ttl, 'max_ttl')
  const defaultTtlMs =
    rules.default_ttl === undefined
      ? (old?.defaultTtlMs ?? Math.min(DEFAULT_TTL_MS, maxTtlMs))
      : requireLifetime(rules.default_ttl, 'default_ttl')
  if (maxTtlMs > longest) throw invalid(`"max_ttl" is longer than this kind can keep. ${limits.why ?? ''}`)
  if (defaultTtlMs > maxTtlMs) throw invalid('"default_ttl" is longer than "max_ttl".')
  if (defaultTtlMs < (limits.minTtlMs ?? 0))
    throw invalid(`"default_ttl" is shorter than this kind can issue. ${limits.why ?? ''}`)
  return { maxTtlMs, defaultTtlMs }
}
