import type { AgentBounds } from '../domain/agent.ts'
import type { AskedRequest } from '../domain/people/canonical-request.ts'
import type { Confirmation } from '../domain/people/confirmation.ts'
import type { Session } from '../domain/people/session.ts'
import type { HeldScopes } from '../domain/scope.ts'

/** Where a request came from, for the audit. */
export interface Origin {
  readonly requestId: string
  readonly ipAddress: string | null
  readonly userAgent: string | null
}

export interface AccessToken {
  readonly jti: string
  /** The key that signed it. */
  readonly kid: string
  /** Epoch ms; a clock may differ by `JWT_TOLERANCE_MS`. */
  readonly expiresAt: number
}

/** The run that an access token is for: it ends with it, and changes nothing else. */
export interface TokenRun {
  readonly id: string
  readonly version: number
}

export interface AgentCaller {
  readonly kind: 'agent'
  readonly agentId: string
  readonly agentName: string
  /** The version of the agent; guards the commits that issue. */
  readonly version: number
  /** What this call may do: the scopes of the token that the agent still holds. */
  readonly scopes: readonly string[]
  /** The token carries less than the agent holds now. */
  readonly isNarrowed: boolean
  /** All scopes that the agent holds, with their ends, if some of them are timed; empty if none is. */
  readonly timed: readonly HeldScopes[]
  readonly agentExpiresAt: number | null
  readonly createdAt: number
  readonly policy: string | null
  /** The bounds recorded with the agent or those of its policy now, whichever are tighter. */
  readonly bounds: AgentBounds
  readonly clientId: string
  /** The access token behind a JWT: every commit requires that it has not ended. */
  readonly accessToken: AccessToken | undefined
  /** The run that the access token was made for. */
  readonly run: TokenRun | undefined
  /** The rotation of the agent's secrets by which it was authenticated. */
  readonly rotation: number
  /** Epoch ms at which these secrets stop being accepted: `Infinity` unless they have been replaced. */
  readonly secretsUntil: number
  /** Epoch ms at which the first part of this ends: the token, the secrets, the agent, or an extra grant. */
  readonly validUntil: number
  /** How the agent authenticated; all but the first two only at the token endpoint. */
  readonly method:
    | 'opaque'
    | 'jwt'
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'private_key_jwt'
    | 'identity'
  /** The generation of the store at which this was read. */
  readonly generation: number
}

/** A person with a session of the console, or of a command. */
export interface OperatorCaller {
  readonly kind: 'operator'
  readonly operatorId: string
  readonly email: string | null
  /** How entries name them: `operator:` and the address, or issuer and subject where none is verified. */
  readonly actor: string
  /** Admin scopes, and scopes of backends that they may grant to agents. */
  readonly scopes: readonly string[]
  /** As it was when the request was authenticated; every commit requires that it is still so. */
  readonly session: Session
  /** With a browser, or with the token of a command. */
  readonly method: 'session' | 'operator_token'
  /** What they ask for, where the route may want it confirmed. */
  readonly asked: AskedRequest | undefined
  /** That they have confirmed exactly this request. */
  readonly confirmation: Confirmation | undefined
  readonly generation: number
}

/** The local host (decisions.md §2.3): no agent, every admin permission, nothing else. */
export interface LocalCaller {
  readonly kind: 'local'
  readonly method: 'loopback' | 'unix_socket' | 'quickstart'
  readonly generation: number
}

export type Caller = AgentCaller | OperatorCaller | LocalCaller

/**
 * Who acts, and from where: what a use case needs to permit, to commit and to record. Made once, when a request is
 * authenticated. Requests that nobody has to authenticate have an `Actor<undefined>`.
 */
export interface Actor<C extends Caller | undefined = Caller> {
  readonly caller: C
  readonly origin: Origin
}

/** The server itself, without a request: jobs, recovery, and work that must be done even if the caller ends. */
export const SYSTEM: Actor<undefined> = {
  caller: undefined,
  origin: { requestId: '', ipAddress: null, userAgent: null },
}
