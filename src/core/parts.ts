import type { BackendDefinition, OpenBackend } from '../backends/open-backends.ts'
import type { Action } from '../domain/actions.ts'
import type { Agent, AgentGrant } from '../domain/agent.ts'
import type { AuditEntry, AuditOutcome } from '../domain/audit-entry.ts'
import type { Revocations } from '../domain/backend.ts'
import type { BackendHealth, HealthReason, HealthState } from '../domain/backend-health.ts'
import type { ProvenWorkload, Trusted } from '../domain/identity/identity.ts'
import type { Notice, NotTakenReason, Receiver } from '../domain/notice.ts'
import type { SsoProvider } from '../domain/people/sso.ts'
import type { PluginArtefact, PluginDescription, PluginProtocol } from '../domain/plugin.ts'
import type { Run, RunEndReason } from '../domain/run.ts'
import type { PublicJwk, SigningKey } from '../keys/jwt-keys.ts'
import type { Change } from '../store/engine/change.ts'
import type { AgentUse } from '../store/tables/agents.ts'
import type { Actor, AgentCaller, Caller, LocalCaller } from './caller.ts'

/** The content of an audit entry; who did it, from where and when is added when it is recorded. */
export interface Entry {
  action: Action
  /** Epoch ms. Set it where several entries of one change must share one time. Default: now. */
  at?: number
  outcome?: AuditOutcome
  /** The agent it is about; null: none. Default: the caller's own. */
  agent?: { readonly id: string; readonly name: string } | null | undefined
  backend?: string | undefined
  credentialId?: string | undefined
  /** The run it is about; null: none. Default: the run of the caller's token. */
  runId?: string | null | undefined
  scopes?: readonly string[] | undefined
  ttlMs?: number | undefined
  metadata?: Readonly<Record<string, unknown>> | undefined
  details?: Readonly<Record<string, unknown>> | undefined
}

/** Denials and failed logins. The first of a kind is recorded at once, repetitions once a minute with their count. */
export interface Denials {
  record(actor: Actor<Caller | undefined>, entry: Entry): void
  flush(now: number): Promise<void>
}

/**
 * Reads by the local host that need an admin scope: the first read of a route is recorded, then their count once a
 * minute.
 */
export interface LocalReads {
  /** Resolves when the store has an entry of the last minute for this route. Throws `audit_unavailable`. */
  record(actor: Actor<LocalCaller>, details: { readonly route: string }): Promise<void>
  flush(now: number): Promise<void>
}

/**
 * Callers by the bearer they present and clients by their id, cached until their agent changes on any node, and those
 * with an access token also until the issuer's keys change.
 */
export interface Callers {
  /** Undefined when the bearer is not, or no longer, valid. */
  find(bearer: string, generation: number): AgentCaller | undefined | Promise<AgentCaller | undefined>
  /** Whether nothing has changed about the caller since it was read, as far as this node has heard, and nothing has ended. */
  isCurrent(caller: AgentCaller): boolean
  /** What a caller may do now depends on other settings: every one is read again. */
  forget(): void
  /** The same caller with its current rights; undefined when the agent has ended. */
  refresh(caller: AgentCaller, generation: number): Promise<AgentCaller | undefined>
  /** From memory alone; undefined when it has to be read. Await the generation of the store first. */
  knownClient(clientId: string): Client | undefined
  /** As `knownClient`, for an agent that `keepNamed` was told of. */
  knownNamed(name: string): Client | undefined
  keepNamed(client: Client): void
  /** An agent that has just been made or read, with its extra grants. Not kept. */
  clientOf(agent: Agent, grants: readonly AgentGrant[], generation: number): Client
  /** From the store: as many queries for an unknown client as for a living one. */
  readClient(clientId: string, generation: number): Promise<Client | undefined>
}

/** An agent as an OAuth client. */
export interface Client {
  readonly agent: Agent
  /** The client with all scopes that its agent holds, extra grants included. */
  readonly caller: AgentCaller
  /** Its extra grants that have not ended. */
  readonly grants: readonly AgentGrant[]
  /** Epoch ms at which the first of its extra grants ends; `Infinity` when none does. */
  readonly grantsEndAt: number
}

/** When and from where each agent was last seen. Kept in memory and written every few seconds, so that no request waits for it. */
export interface LastUse {
  touch(agentId: string, use: AgentUse): void
  /** What has not been written yet. */
  get(agentId: string): AgentUse | undefined
  flush(): Promise<void>
}

/**
 * Runs in the memory of this node: those that it was asked about, and the beats that it has not written yet. No request waits
 * for a beat to be written (ADR 0068).
 */
export interface Runs {
  /** Without a promise when the run is known, as far as this node has heard. Undefined: there is none with this id. */
  find(id: string): Run | undefined | Promise<Run | undefined>
  /** The run says at `at`, epoch ms, that it lives. */
  beat(run: Run, at: number): void
  /** A beat that is not written yet. */
  latestBeat(id: string): number | undefined
  /** Writes the beats, if it is time for one of them; `all`: in any case. */
  flush(all?: boolean): Promise<void>
}

/** Since when this node has been answering without a gap that some heartbeats may have fallen into. */
export interface Answering {
  /** Looks whether it answers now. Call it often: a time without a look is a gap. */
  look(): Promise<void>
  /** Epoch ms; `Infinity` if it does not answer. Gaps that are short against the interval do not count. */
  since(heartbeatMs: number): number
}

/** The issuer's RSA keys: one that signs, and those that still verify after a rotation. */
export interface IssuerKeySet {
  readonly signing: SigningKey
  /** All keys that verify, as the JWKS shows them, newest first. */
  readonly verifying: readonly {
    readonly kid: string
    readonly publicJwk: PublicJwk
    readonly createdAt: number
    readonly retiresAt: number | null
  }[]
}

export interface IssuerKeys {
  at(generation: number): IssuerKeySet | Promise<IssuerKeySet>
}

/** Changes that end a credential whose upstream account is gone or must go. The store takes them in the end. */
export interface Overdue {
  /** Commits the change in the background, until the store has taken it. It inserts an audit entry. */
  add(credentialId: string, change: Change): void
  /** Whether the record of this credential is still wrong. */
  has(credentialId: string): boolean
  /** Tries each of them one last time. */
  close(): Promise<void>
}

/** The artefacts of plugins on this machine. */
export interface PluginHost {
  /** Starts a checked copy of the artefact once, and asks what it is. Throws `BackendError`. */
  describe(
    asked: PluginArtefact & { readonly protocol: PluginProtocol },
  ): Promise<{ readonly bytes: number; readonly description: PluginDescription }>
  /** Removes an artefact that no plugin has any more. */
  discard(sha256: string): Promise<void>
}

/** The backend that a verdict is on. */
export type HealthOf = Pick<BackendDefinition, 'uid' | 'name' | 'version' | 'config'>

/** A backend went down or came back, as far as this node knows. */
export interface HealthChange {
  readonly backend: { readonly uid: string; readonly name: string }
  readonly from: HealthState
  readonly to: 'up' | 'down'
  /** Why it is down. */
  readonly reason: HealthReason | undefined
  /** Epoch ms. */
  readonly at: number
}

/** How each backend is, from real calls and checks of this node. Idle backends are not probed. */
export interface Health {
  /** The upstream did what it was asked. */
  succeeded(backend: HealthOf): void
  /**
   * `begunAt`: epoch ms at which the call began that failed. `detail` is for the log, the local host and holders of `admin:*`.
   * `isCertain`: a success at the same time proves nothing against it.
   */
  failed(
    backend: HealthOf,
    begunAt: number,
    why: { readonly reason: HealthReason; readonly detail: string; readonly isCertain?: boolean },
  ): void
  of(backend: Pick<OpenBackend, 'uid' | 'version' | 'config' | 'kind'>): BackendHealth
  /** Calls the listener after each change of state, in the turn in which it happens. Returns what takes it off. */
  onChange(listener: (change: HealthChange) => void): () => void
  /** Forgets backends that are gone. */
  keepOnly(uids: { has(uid: string): boolean }): void
}

/** What the tries to end credentials at each upstream have said last, on all nodes. Kept in memory and written every few seconds, so that no revocation waits for it. */
export interface LastRevocations {
  succeeded(backendUid: string, at: number): void
  failed(backendUid: string, failure: NonNullable<Revocations['lastFailure']>): void
  /** By backend; one of which nothing is known is absent. */
  all(): Promise<ReadonlyMap<string, Revocations>>
  flush(): Promise<void>
}

/** The outcome of a test. */
export interface Tested {
  readonly isTaken: boolean
  readonly reason?: NotTakenReason
}

export interface Notifier {
  /** These receivers from now on. One that stays, by its name, goes on where it was, with its new settings at once. */
  setReceivers(receivers: readonly Receiver[]): void
  /** Starts to tell each receiver for which it is time. Resolves when nothing is being told any more; never rejects. */
  tellDue(): Promise<void>
  /** Sends this message to one receiver, once. Undefined: there is none of this name. */
  test(name: string, notice: Notice): Promise<Tested | undefined>
  /** Ends what is being sent, and lets other nodes go on at once. */
  stop(): Promise<void>
}

/** The providers of single sign-on. */
export interface SsoProviders {
  /** These from now on. */
  setProviders(providers: readonly SsoProvider[]): void
  /** In the order of the configuration. */
  names(): string[]
  find(name: string): SsoProvider | undefined
}

/** Who logs in here without a secret of ours. */
export interface Identities {
  /** These entries from now on. Keys of issuers that stay are kept. */
  setTrusted(trusted: Trusted): void
  trusted(): Trusted
  /** Verifies a token that somebody else signed, and finds the one entry that it matches. Throws `IdentityRefused`. */
  prove(token: string): Promise<ProvenWorkload>
}

/** An entry, and the place from which a stream goes on after it: the body of an id. */
export interface PlacedEntry {
  readonly entry: AuditEntry
  readonly place: string
}

/** The end of a stream that the feed writes to. None of these throws or waits. */
export interface LiveStream {
  /** At least one, oldest first. Many streams get the same array. `isWhole`: the reader may see all of each. */
  entries(placed: readonly PlacedEntry[], isWhole: boolean): void
  /** Nothing has happened, or the stream has just begun: it goes on from here. */
  keep(place: string): void
  /** Entries were left out. */
  reset(place: string): void
  end(): void
}

/** One reader of the feed. */
export interface Follower {
  leave(): void
}

/** Tells streams what appears in the audit. One reader of the store for all streams of the node, while there are any. */
export interface Feed {
  /**
   * `matches`: undefined for everything. `after`: the body of an id that the stream goes on from; without, it begins now. The stream ends when what its caller was
   * admitted by does. Throws `rate_limited`.
   */
  join(
    by: { readonly caller: Caller; readonly bearer: string | undefined },
    matches: ((entry: AuditEntry) => boolean) | undefined,
    after: string | undefined,
    stream: LiveStream,
  ): Follower
  /** Ends all streams, and those that are still to come. */
  close(): Promise<void>
}

/** What a stream of a run is told. */
export interface RunStateView {
  readonly isRunning: boolean
  /** Why it ended; null: it lives. */
  readonly reason: RunEndReason | null
  /** Epoch ms; null: it has ended. */
  readonly deadAt: number | null
  /** Ids of its credentials that live. */
  readonly credentials: readonly string[]
}

/** `at`: as of when this is known, epoch ms. */
export interface RunStream {
  state(view: RunStateView, at: number): void
  /** The last state is still true. */
  alive(at: number): void
  end(): void
}

/** Tells streams which credentials of their runs live, on whatever node one of them ends. */
export interface FollowedRuns {
  /** The stream ends with the run, or with what its caller was admitted by. Throws `rate_limited`. */
  join(
    by: { readonly caller: AgentCaller; readonly bearer: string | undefined },
    run: Run,
    stream: RunStream,
  ): Follower
  /** Ends all streams, and those that are still to come. */
  close(): Promise<void>
}
