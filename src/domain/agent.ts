import type { EndReason } from './credential.ts'
import { invalid, Problem } from './problems.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const RESERVED = new Set(['admin', 'openid', 'local', 'system', 'mayfly'])

/** Whether it has the form of a name. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

/** Names that no agent and no backend has. */
export function isReservedName(name: string): boolean {
  return RESERVED.has(name.toLowerCase())
}

/** decisions.md §5.1. Backend names follow the same rule, so that scopes and addresses stay simple. */
export function requireName(name: string, field = 'name'): void {
  if (!isName(name)) {
    throw invalid(`"${field}" is 1 to 128 letters, digits, ".", "_" or "-", starting with a letter or digit.`)
  }
  if (isReservedName(name)) throw new Problem('conflict', { message: `This ${field} is reserved.` })
}

/** Names are unique ignoring case. */
export function nameKey(name: string): string {
  return name.toLowerCase()
}

/** Limits on what an agent is issued. What is missing is not limited. */
export interface AgentBounds {
  readonly maxTtlMs?: number
  /** Active credentials. */
  readonly maxActive?: number
  /** Of all agents under the same policy together. */
  readonly issueRate?: { readonly count: number; readonly perMs: number }
}

/** Who asks for credentials. Times in epoch ms. */
export interface Agent {
  readonly id: string
  readonly name: string
  /** For people. */
  readonly description: string | null
  readonly scopes: readonly string[]
  /** Audiences it may request tokens for, beside the issuer and the audiences of the server. */
  readonly audiences: readonly string[]
  /** Rises with every change that a cached caller must notice. */
  readonly version: number
  readonly bearerHash: string
  readonly clientId: string
  readonly clientSecretHash: string
  /** How often its token and client secret were replaced; access tokens say from which of them they come. */
  readonly rotation: number
  /** The secrets before the last rotation, while they are still accepted. */
  readonly previous: PreviousSecrets | null
  /** The enrolled public key (RFC 7517), for `private_key_jwt`. */
  readonly publicJwk: Readonly<Record<string, unknown>> | null
  readonly signingKeyId: string
  readonly signingEmail: string
  /** The policy that it came under, no matter who approved it, or that the agent that created it came under. */
  readonly policy: string | null
  /** The bounds of that policy then; null: none are recorded. */
  readonly bounds: AgentBounds | null
  readonly createdBy: string
  /** Who answers for it; null: who created it. */
  readonly owner: string | null
  /** The entry that it came under (`keyOfEntry`); null: it has secrets of its own. */
  readonly identity: string | null
  /** What it is bound to, the issuer first: the same name from other values is a refusal. */
  readonly identityValues: readonly string[] | null
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly endedAt: number | null
  readonly endReason: AgentEndReason | null
}

export interface PreviousSecrets {
  readonly bearerHash: string
  readonly clientSecretHash: string
  /** Epoch ms. */
  readonly until: number
}

/**
 * When the secrets of this rotation, and the access tokens that came from them, stop being accepted: never for the current
 * ones, at the end of their grace for those before, and at once (0) for all others. Epoch ms.
 */
export function secretsEnd({ rotation, previous }: Pick<Agent, 'rotation' | 'previous'>, of: number): number {
  if (of === rotation) return Number.POSITIVE_INFINITY
  return of === rotation - 1 ? (previous?.until ?? 0) : 0
}

/**
 * `untrusted`: no node has the entry of `identities` or `platforms` that it came under. `logged_out`: the last login of an agent
 * without secrets ended.
 */
export type AgentEndReason = 'deleted' | 'expired' | 'uncollected' | 'untrusted' | 'logged_out'

/** Why the credentials of an agent ended with it. */
export function endOfCredentials(how: AgentEndReason): EndReason {
  return how === 'expired' ? 'agent_expired' : 'agent_deleted'
}

/** Extra scopes from an approved amendment. */
export interface AgentGrant {
  readonly id: string
  readonly agentId: string
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly expiresAt: number | null
}
