import type { Registry } from '../backends/registry.ts'
import type { IdKind } from '../domain/ids.ts'
import type { CompiledPolicy } from '../domain/policy.ts'
import type { HeldScopes } from '../domain/scope.ts'
import type { SigningIdentity } from '../domain/signing-identity.ts'
import type * as bearer from '../keys/bearer.ts'
import type * as jwtKeys from '../keys/jwt-keys.ts'
import type * as pgp from '../keys/pgp.ts'
import type * as proofs from '../keys/proofs.ts'
import type * as publicJwk from '../keys/public-jwk.ts'
import type { Sealer } from '../keys/seal.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/open.ts'
import type { Trace } from '../trace.ts'
import type { Callers } from './callers.ts'
import type { Denials } from './denials.ts'
import type { IssuerKeys } from './issuer-keys.ts'
import type { LastUse } from './last-use.ts'
import type { Rates } from './rates.ts'

/** Minting, signing and checking; handed over as one object, since core knows only the types. */
export type Keys = typeof bearer & typeof jwtKeys & typeof pgp & typeof proofs & typeof publicJwk

/** What a use case may need; each takes the parts it names. Built once by `app.ts`. */
export interface Core {
  readonly store: Store
  readonly sealer: Sealer
  readonly hasher: bearer.Hasher
  readonly keys: Keys
  readonly ids: { body(): string; id(kind: IdKind): string }
  readonly issuerKeys: IssuerKeys
  readonly backends: Registry
  readonly callers: Callers
  readonly denials: Denials
  readonly lastUse: LastUse
  readonly rates: Rates
  readonly settings: Settings
  readonly meter: Meter
  readonly log: Log
  readonly trace: Trace
  /** In [0, 1): jitter only. */
  readonly random: () => number
}

export interface Settings {
  /** Of this Mayfly. */
  readonly version: string
  /** Exact issuer string; no trailing slash. */
  readonly issuer: string
  readonly accessTokenMs: number
  /** Audiences that any agent may ask an access token for, besides the issuer. */
  readonly audiences: readonly string[]
  readonly signingDomain: string
  readonly signingIdentity: SigningIdentity
  /** Whether private signing keys may be read. */
  readonly signingKeyExport: boolean
  readonly policies: readonly (CompiledPolicy & { readonly pattern: string })[]
  readonly maxActivePerAgent: number
  readonly issueRate: { count: number; perMs: number } | undefined
  readonly maxPendingEnrollments: number
  readonly enrollmentsPerMinute: number
  readonly tokenFailuresPerMinute: number
  readonly upstreamTimeoutMs: number
  readonly revokeUndelivered: boolean
}

/** Counters for `/metrics`; the composition root says how they are kept. */
export interface Meter {
  issued(backendType: string, outcome: 'ok' | 'denied' | 'failed', ms: number): void
  revoked(backendType: string, outcome: 'ok' | 'failed'): void
  expired(backendType: string, count: number): void
  authenticated(method: string, outcome: 'ok' | 'failed'): void
}

/** What is metered under this name was asked of a backend that is not configured. */
export const UNKNOWN_BACKEND = 'unknown'

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
