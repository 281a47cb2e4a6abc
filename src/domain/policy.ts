import type { AgentBounds } from './agent.ts'
import { coversAny, isAdminScope, overlaps } from './scope.ts'

export interface Rate {
  readonly count: number
  /** The window in ms. */
  readonly perMs: number
}

/** A policy with its glob compiled elsewhere: the glob library is an npm package, which domain may not import. */
export interface CompiledPolicy {
  readonly name: string
  matches(name: string): boolean
  readonly scopes: readonly string[]
  readonly autoApprove: boolean
  readonly maxAgentLifetimeMs?: number | undefined
  readonly maxTtlMs?: number | undefined
  readonly maxAgents?: number | undefined
  /** Limits admissions. */
  readonly rate?: Rate | undefined
  /** Limits issuing by all its agents together. */
  readonly issueRate?: Rate | undefined
  /** Active credentials per agent. */
  readonly maxActive?: number | undefined
  /** Audiences of its agents, beside those of the server. */
  readonly audiences?: readonly string[] | undefined
  /** Whether each agent that it admits gets a name of its own: the requested one and a random suffix. */
  readonly suffix?: boolean | undefined
  /** Scope patterns that this policy never grants. */
  readonly deny: readonly string[]
}

export type Admission<P extends CompiledPolicy = CompiledPolicy> =
  | { decision: 'approve'; policy: P; scopes: string[]; lifetimeMs?: number }
  | { decision: 'wait'; policy?: P; reason: string }

const WINDOWS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const
const RATE = /^([1-9]\d{0,8})\/(second|minute|hour|day)$/

/** `10/hour` → 10 per 3600000 ms; `undefined` for any other text. */
export function parseRate(text: string): Rate | undefined {
  const match = RATE.exec(text)
  if (match === null) return undefined
  return { count: Number(match[1]), perMs: WINDOWS[match[2] as keyof typeof WINDOWS] }
}

/** The text that `parseRate` reads; other windows are written in seconds. */
export function formatRate(rate: Rate): string {
  const window = Object.entries(WINDOWS).find(([, ms]) => ms === rate.perMs)?.[0]
  return `${rate.count}/${window ?? `${rate.perMs / 1_000}s`}`
}

/**
 * decisions.md §5.6: the first policy whose pattern matches the name decides. Without `scopes` it grants its own;
 * otherwise exactly the requested ones, if it covers all. Any other request waits for an administrator, and only
 * administrators see the reason. An empty list grants nothing. The caller checks numbers and rates by
 * `admissionBounds`.
 */
export function decideAdmission<P extends CompiledPolicy>(
  policies: readonly P[],
  request: { readonly name: string; readonly scopes: readonly string[] | undefined },
): Admission<P> {
  const policy = policies.find((candidate) => candidate.matches(request.name))
  if (policy === undefined) return { decision: 'wait', reason: 'No policy matches this name.' }
  const reason = reasonToWait(policy, request.scopes)
  if (reason !== undefined) return { decision: 'wait', policy, reason }
  const scopes = [...new Set(request.scopes ?? policy.scopes)]
  return policy.maxAgentLifetimeMs === undefined
    ? { decision: 'approve', policy, scopes }
    : { decision: 'approve', policy, scopes, lifetimeMs: policy.maxAgentLifetimeMs }
}

function reasonToWait(policy: CompiledPolicy, asked: readonly string[] | undefined): string | undefined {
  const named = `The policy "${policy.name}"`
  if (!policy.autoApprove) return `${named} leaves this name to an administrator.`
  const scopes = asked ?? policy.scopes
  if (scopes.some(isAdminScope)) return 'A policy never approves admin scopes.'
  if (asked?.some((scope) => !coversAny(policy.scopes, scope)) === true) {
    return `${named} does not grant every requested scope.`
  }
  // A wider scope includes denied ones, so any overlap counts, not only being covered.
  if (scopes.some((scope) => policy.deny.some((denied) => overlaps(denied, scope)))) {
    return `${named} denies a scope that the request would grant.`
  }
  return undefined
}

export interface AdmissionBounds {
  readonly maxAgentLifetimeMs: number | undefined
  /** Live agents under this policy. */
  readonly maxAgents: number | undefined
  /** Approvals by this policy. */
  readonly rate: Rate | undefined
}

/** The bounds of admission, which the caller checks. */
export function admissionBounds(policy: CompiledPolicy): AdmissionBounds {
  return {
    maxAgentLifetimeMs: policy.maxAgentLifetimeMs,
    maxAgents: policy.maxAgents,
    rate: policy.rate,
  }
}

/** The bounds that its agents keep, even if the policy is renamed or removed. */
export function policyBounds({ maxTtlMs, maxActive, issueRate }: CompiledPolicy): AgentBounds {
  return {
    ...(maxTtlMs === undefined ? {} : { maxTtlMs }),
    ...(maxActive === undefined ? {} : { maxActive }),
    ...(issueRate === undefined ? {} : { issueRate }),
  }
}

/** The tighter of each bound. */
export function tightest(one: AgentBounds, other: AgentBounds): AgentBounds {
  const merged = { ...one, ...other }
  const speed = ({ count, perMs }: Rate) => count / perMs
  if (one.maxTtlMs !== undefined && other.maxTtlMs !== undefined)
    Object.assign(merged, { maxTtlMs: Math.min(one.maxTtlMs, other.maxTtlMs) })
  if (one.maxActive !== undefined && other.maxActive !== undefined)
    Object.assign(merged, { maxActive: Math.min(one.maxActive, other.maxActive) })
  if (
    one.issueRate !== undefined &&
    other.issueRate !== undefined &&
    speed(one.issueRate) < speed(other.issueRate)
  )
    Object.assign(merged, { issueRate: one.issueRate })
  return merged
}

/** The decision on a request, and how it was reached. */
export interface Explanation {
  readonly decision: Admission['decision']
  /** Why an administrator must decide; empty if approved. */
  readonly reason: string
  /** The deciding policy. */
  readonly policy: string | undefined
  readonly scopes: readonly string[]
  /** Only if approved. */
  readonly lifetimeMs: number | undefined
  /** All policies in order; the first that matches the name decides. */
  readonly policies: readonly { name: string; pattern: string; matches: boolean; decides: boolean }[]
}

/** Explains the result of `decideAdmission`. */
export function explainAdmission<P extends CompiledPolicy & { readonly pattern: string }>(
  policies: readonly P[],
  request: { readonly name: string; readonly scopes?: readonly string[] | undefined },
  admission: Admission<P>,
): Explanation {
  const { decision, policy } = admission
  return {
    decision,
    reason: admission.decision === 'wait' ? admission.reason : '',
    policy: policy?.name,
    scopes: [...new Set(request.scopes ?? policy?.scopes ?? [])],
    lifetimeMs: admission.decision === 'approve' ? admission.lifetimeMs : undefined,
    policies: policies.map((one) => ({
      name: one.name,
      pattern: one.pattern,
      matches: one.matches(request.name),
      decides: one === policy,
    })),
  }
}
