import type { Registry } from '../backends/open-backends.ts'
import type { IdKind } from '../domain/ids.ts'
import type { RelyingParty } from '../domain/people/relying-party.ts'
import type { CompiledPolicy } from '../domain/policy.ts'
import type { RunEndReason } from '../domain/run.ts'
import type { SigningIdentity } from '../domain/signing-identity.ts'
import type { Trace } from '../domain/trace.ts'
import type { Hasher } from '../keys/bearer.ts'
import type { Sealer } from '../keys/seal.ts'
import type { Log } from '../log/log.ts'
import type { Store } from '../store/open.ts'
import type { Unended } from '../store/tables/counts.ts'
import type {
  Answering,
  Callers,
  Denials,
  Feed,
  FollowedRuns,
  Health,
  Identities,
  IssuerKeys,
  LastRevocations,
  LastUse,
  LocalReads,
  Notifier,
  Overdue,
  PluginHost,
  Runs,
  SsoProviders,
} from './parts.ts'
import type { Quotas } from './quotas.ts'
import type { Rates } from './rates.ts'
import type { Serialize } from './serialize.ts'

/** Everything that use cases need. A use case that needs few parts names them: `Pick<Core, 'store' | 'ids'>`. */
export interface Core {
  readonly store: Store
  readonly sealer: Sealer
  readonly hasher: Hasher
  readonly ids: { body(at?: number): string; id(kind: IdKind): string }
  readonly issuerKeys: IssuerKeys
  readonly backends: Registry
  readonly plugins: PluginHost
  readonly health: Health
  readonly callers: Callers
  readonly denials: Denials
  readonly localReads: LocalReads
  readonly lastUse: LastUse
  readonly runs: Runs
  readonly answering: Answering
  readonly revocations: LastRevocations
  /** What each backend has not ended upstream yet, by its uid. A very large count may be some seconds old. */
  readonly unended: () => Promise<ReadonlyMap<string, Unended>>
  readonly rates: Rates
  readonly serialize: Serialize
  readonly quotas: Quotas
  readonly overdue: Overdue
  readonly notifier: Notifier
  readonly feed: Feed
  readonly followedRuns: FollowedRuns
  readonly sso: SsoProviders
  readonly identities: Identities
  readonly settings: Settings
  readonly meter: Meter
  readonly log: Log
  /** Does nothing unless `otlp_endpoint` is set. */
  readonly trace: Trace
}

export interface Settings {
  /** The version of this Mayfly. */
  readonly version: string
  /** Exact issuer string; no trailing slash. */
  readonly issuer: string
  /** The audiences that an agent may sign for: the issuer, the previous ones, and each under the names of the loopback. */
  readonly issuerNames: readonly string[]
  /** As browsers and passkeys know this server. */
  readonly relyingParty: RelyingParty
  /** `off`: nobody logs in with a browser here, and no session counts. */
  readonly console: 'on' | 'off'
  /** `off`: no command logs in as an operator, and no token of one counts. Always `off` without the console. */
  readonly operatorLogin: 'on' | 'off'
  readonly accessTokenTtlMs: number
  /** Audiences for which any agent may request an access token, besides the issuer. */
  readonly audiences: readonly string[]
  readonly signingDomain: string
  readonly signingIdentity: SigningIdentity
  /** Whether private signing keys may be read. */
  readonly signingKeyExport: boolean
  readonly policies: readonly (CompiledPolicy & { readonly pattern: string })[]
  readonly maxActivePerAgent: number
  /** How often a run beats that does not say, and how long it may live. */
  readonly runsHeartbeatMs: number
  readonly runsMaxMs: number | undefined
  readonly issueRate: { count: number; perMs: number } | undefined
  readonly maxPendingEnrollments: number
  readonly enrollmentsPerMinute: number
  readonly tokenFailuresPerMinute: number
  readonly tokensPerMinute: number
  readonly upstreamTimeoutMs: number
  readonly revokeUndelivered: boolean
}

/** Counters for `/metrics`. */
export interface Meter {
  issued(backendType: string, outcome: 'ok' | 'denied' | 'failed', ms: number): void
  revoked(backendType: string, outcome: 'ok' | 'failed'): void
  expired(backendType: string, count: number): void
  authenticated(method: string, outcome: 'ok' | 'failed'): void
  runStarted(): void
  runEnded(reason: RunEndReason, count: number): void
  runBeat(): void
}

/** The label of requests for a backend that is not configured. */
export const UNKNOWN_BACKEND = 'unknown'
