import type { HeldScopes } from '../domain/scope.ts'

/** Where a request came from; goes into the audit. */
export interface Origin {
  readonly requestId: string
  readonly ipAddress: string | null
  readonly userAgent: string | null
}

export interface AgentCaller {
  readonly kind: 'agent'
  readonly agentId: string
  readonly agentName: string
  /** Of the agent's row; a commit that issues is guarded by it. */
  readonly version: number
  /** What this call may do: the token's scopes ∩ the agent's own now. */
  readonly scopes: readonly string[]
  /** Its token carries less than all that the agent holds now. */
  readonly isNarrowed: boolean
  /** Where some of what the agent holds is granted for a time: all that it holds, with the ends. Empty: it is for good. */
  readonly timed: readonly HeldScopes[]
  readonly agentExpiresAt: number | null
  readonly createdAt: number
  readonly policy: string | null
  readonly clientId: string
  /** How it said who it is; the client methods at the token endpoint only. */
  readonly method: 'opaque' | 'jwt' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'
  /** The generation of the store at which all this was true. */
  readonly generation: number
}

/** The local host (decisions §2.3): no agent, every admin permission, nothing else. */
export interface LocalCaller {
  readonly kind: 'local'
  readonly method: 'loopback' | 'admin_token' | 'unix_socket'
  readonly generation: number
}

export type Caller = AgentCaller | LocalCaller

/** For work that nobody asked for: the sweeper, the reaper, recovery. */
export const SYSTEM: Origin = { requestId: '', ipAddress: null, userAgent: null }
