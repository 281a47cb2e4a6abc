import type { OpenBackend } from '../../backends/open-backends.ts'
import type { Credential } from '../../domain/credential.ts'
import type { Run } from '../../domain/run.ts'
import type { Use } from '../../domain/use.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import type { Entry } from '../parts.ts'

export interface Narrowing {
  readonly repo?: readonly string[] | undefined
  readonly read_only?: boolean | undefined
}

export interface IssueCommand {
  readonly backend: string
  /** A duration as it was written. */
  readonly ttl?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly metadata?: Record<string, unknown> | undefined
  readonly params?: Record<string, unknown> | undefined
  /** `repo` and `read_only` of a query: options that only some kinds know. */
  readonly narrow?: Narrowing | undefined
  /** The id of the run that it ends with. */
  readonly run?: string | undefined
  /** Say where and how it is used. */
  readonly uses?: boolean | undefined
  /** The header `Idempotency-Key`. */
  readonly idempotencyKey?: string | undefined
}

/** A request that carries an `Idempotency-Key`: the hashes of the key and of the request. */
export interface IdempotencyClaim {
  readonly keyHash: string
  readonly bodyHash: string
}

/** One request for a credential. It is filled in along the way and recorded once, when it ends. */
export interface Attempt {
  /** Its caller is read again if the agent has changed since authentication. */
  actor: Actor<AgentCaller>
  readonly command: IssueCommand
  /** Undefined until it is found. */
  backend: OpenBackend | undefined
  /** Undefined until the request is granted. */
  plan: Plan | undefined
  /** Its failure is already in the audit. */
  isRecorded: boolean
}

/** The decision, made before anything is written. Times in epoch ms. */
export interface Plan {
  /** The credential's. */
  readonly id: string
  readonly scopes: readonly string[]
  /** Scopes of the agent that this backend cannot give; only if the request named none. */
  readonly leftOut: readonly string[]
  readonly ttlMs: number
  readonly now: number
  readonly expiresAt: number
  readonly params: Record<string, unknown>
  readonly claim: IdempotencyClaim | undefined
  /** It ends with this run. */
  readonly run: Run | undefined
}

/** Whose the credential is: an agent's, or that of an administrator who tries a backend (ADR 0063). */
export type Holder = Pick<AgentCaller, 'agentId' | 'agentName' | 'policy' | 'bounds'>

/** An attempt that was granted. */
export interface Granted extends Omit<Attempt, 'actor'> {
  readonly actor: Actor
  readonly holder: Holder
  readonly backend: OpenBackend
  readonly plan: Plan
}

/** The issued credential as the caller receives it. Times in epoch ms. */
export interface IssuedCredential {
  readonly id: string
  /** Absent when a repeated request comes after the secret has been erased. */
  readonly secret: string | undefined
  readonly fields: Readonly<Record<string, string | number>> | undefined
  readonly backend: string
  readonly scopes: readonly string[]
  /** Scopes of the agent that this backend cannot give; only if the request named none. */
  readonly leftOut: readonly string[]
  readonly ttlMs: number
  readonly createdAt: number
  readonly expiresAt: number
  readonly upstreamExpiresAt: number | null
  /** Issued by an earlier request with this `Idempotency-Key`, whose caller may hold its secret. */
  readonly isRepeated?: true
  /** Only where the request asked for it. */
  readonly uses?: readonly Use[] | undefined
}

/** The agent or the backend changed between authentication and commit: decide again. */
export class StalePlan extends Error {
  override readonly name = 'StalePlan'
}

/** An issue commits only while the agent, the backend and the run are unchanged since the decision. */
export function whileGranted({ actor, backend, plan }: Granted): Step[] {
  return [
    ...whileUnchanged(actor),
    { op: 'guard', table: 'backends', id: backend.uid, version: backend.version },
    ...whileInRun(plan),
  ]
}

/** Holds the run until the commit: its end waits for the issue, and then sees the credential. */
export function whileInRun({ run }: Plan): Step[] {
  return run === undefined ? [] : [{ op: 'guard', table: 'runs', id: run.id, version: run.version }]
}

type Beginning = Pick<Credential, 'state' | 'revocation' | 'expiresAt' | 'dueAt'> &
  Partial<Pick<Credential, 'upstreamExpiresAt' | 'secretHash'>>

/** The credential's first record. */
export function newCredential({ holder, backend, plan }: Granted, set: Beginning): Credential {
  return {
    id: plan.id,
    agentId: holder.agentId,
    agentName: holder.agentName,
    backendUid: backend.uid,
    backend: backend.name,
    runId: plan.run?.id ?? null,
    scopes: plan.scopes,
    state: set.state,
    revocation: set.revocation,
    ttlMs: plan.ttlMs,
    createdAt: plan.now,
    expiresAt: set.expiresAt,
    upstreamExpiresAt: set.upstreamExpiresAt ?? null,
    endedAt: null,
    endReason: null,
    settledAt: null,
    dueAt: set.dueAt,
    attempts: 0,
    stuckAt: null,
    secretHash: set.secretHash ?? null,
    sealedHandle: null,
    failure: null,
  }
}

/** An entry about the credential that the attempt is for. */
export function auditAttempt(
  core: Pick<Core, 'ids' | 'store'>,
  { actor, holder, command, backend, plan }: Granted,
  entry: Pick<Entry, 'action' | 'outcome' | 'details'>,
): Step {
  return audit(core, actor, {
    ...entry,
    agent: { id: holder.agentId, name: holder.agentName },
    backend: backend.name,
    credentialId: plan.id,
    runId: plan.run?.id ?? null,
    scopes: plan.scopes,
    ttlMs: plan.ttlMs,
    metadata: command.metadata,
  })
}
