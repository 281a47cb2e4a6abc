import type { Action } from '../domain/actions.ts'
import type { PublicJwk, SigningKey } from '../keys/jwt-keys.ts'
import type { AgentCaller, Caller, Origin } from './caller.ts'

/** What an audit entry says; who did it, from where and when is added when it is recorded. */
export interface Entry {
  action: Action
  outcome?: 'ok' | 'denied' | 'failed'
  /** Whom it is about; the caller's own agent where it is not given. */
  agent?: { id: string; name: string } | undefined
  backend?: string | undefined
  credentialId?: string | undefined
  scopes?: readonly string[] | string | undefined
  ttlMs?: number | undefined
  metadata?: Record<string, unknown> | undefined
  details?: Record<string, unknown> | undefined
}

/** Denials and failed logins: the first of a kind is recorded at once, a flood of the same once a minute with its count. */
export interface Denials {
  record(caller: Caller | undefined, origin: Origin, entry: Entry): void
  flush(now: number): Promise<void>
}

/**
 * Callers by the bearer they present. What was found true at one generation of the store is kept for that
 * generation: whatever ends or changes an agent, on any node, moves the generation on.
 */
export interface Callers {
  /** Undefined: the bearer is not (or no longer) good. */
  find(bearer: string, generation: number): AgentCaller | undefined | Promise<AgentCaller | undefined>
  /** The same caller as it stands now; undefined when the agent has ended. */
  refresh(caller: AgentCaller, generation: number): Promise<AgentCaller | undefined>
}

/** When each agent was last seen. Kept in memory and written every few seconds: no request waits for it. */
export interface LastUse {
  touch(agentId: string, now: number): void
  /** What has not been written yet. */
  get(agentId: string): number | undefined
  flush(): Promise<void>
}

/** The issuer's RSA keys: one that signs, and those that still verify for a while after a rotation. */
export interface IssuerKeySet {
  readonly signing: SigningKey
  /** Newest first; all that a token may be verified by, and what the JWKS shows. */
  readonly verifying: readonly {
    readonly kid: string
    readonly publicJwk: PublicJwk
    readonly retiresAt: number | null
  }[]
  /** Access tokens revoked before their end (RFC 7009), with that end in epoch ms. */
  readonly revoked: ReadonlyMap<string, number>
}

export interface IssuerKeys {
  at(generation: number): IssuerKeySet | Promise<IssuerKeySet>
}
