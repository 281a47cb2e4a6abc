import type { OpenBackend } from '../../backends/registry.ts'
import { formatDuration } from '../../domain/duration.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import { audit } from '../audit/entry.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'

export interface IssueCommand {
  readonly backend: string
  /** A duration as it was written. */
  readonly ttl?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly metadata?: Record<string, unknown> | undefined
  readonly params?: Record<string, unknown> | undefined
  /** The header `Idempotency-Key`. */
  readonly idempotencyKey?: string | undefined
}

/** A request that carries an `Idempotency-Key`, by the hashes of the key and of what was asked. */
export interface IdempotencyClaim {
  readonly keyHash: string
  readonly bodyHash: string
}

/** What the caller is given, once. */
export interface IssuedCredential {
  readonly id: string
  /** Absent when a repeated request comes after the secret has been erased. */
  readonly token: string | undefined
  readonly fields: Readonly<Record<string, string | number>> | undefined
  readonly backend: string
  readonly scopes: readonly string[]
  /** As a duration. */
  readonly ttl: string
  /** Epoch ms. */
  readonly createdAt: number
  readonly expiresAt: number
  readonly upstreamExpiresAt: number | null
  /** Issued by an earlier request with this `Idempotency-Key`, whose caller may have its secret. */
  readonly isRepeated?: true
}

/** All that was decided before anything is done. */
export interface Plan {
  readonly id: string
  readonly caller: AgentCaller
  readonly origin: Origin
  readonly backend: OpenBackend
  readonly scopes: readonly string[]
  readonly ttlMs: number
  readonly now: number
  readonly expiresAt: number
  readonly params: Record<string, unknown>
  readonly metadata: Record<string, unknown> | undefined
  readonly claim: IdempotencyClaim | undefined
}

/** The world changed between authentication and commit: decide anew. */
export class StalePlan extends Error {
  override readonly name = 'StalePlan'
}

export function presentPlan(
  plan: Plan,
  issued: { secret?: string; fields?: Readonly<Record<string, string | number>> },
  expiresAt: number,
  upstream: number | null,
): IssuedCredential & { token: string } {
  return {
    id: plan.id,
    token: issued.secret ?? JSON.stringify(issued.fields ?? {}),
    fields: issued.fields,
    backend: plan.backend.name,
    scopes: plan.scopes,
    ttl: formatDuration(plan.ttlMs),
    createdAt: plan.now,
    expiresAt,
    upstreamExpiresAt: upstream,
  }
}

/** The entry of a successful issue. */
export function issuedEntry(
  core: Core,
  plan: Plan,
  facts: Readonly<Record<string, string | number>> | undefined,
) {
  return audit(core, plan.caller, plan.origin, {
    action: 'credential.issued',
    backend: plan.backend.name,
    credentialId: plan.id,
    scopes: plan.scopes,
    ttlMs: plan.ttlMs,
    metadata: plan.metadata,
    details: facts,
  })
}

type RowSettings = Pick<CredentialRow, 'state' | 'revocation' | 'expires_at' | 'due_at'> &
  Partial<Pick<CredentialRow, 'upstream_expires_at' | 'secret_hash'>>

/** What is the same whether or not there is an upstream. */
export function rowOf(plan: Plan, set: RowSettings): CredentialRow {
  const { caller, backend } = plan
  return {
    id: plan.id,
    agent_id: caller.agentId,
    agent_name: caller.agentName,
    backend_uid: backend.uid,
    backend: backend.name,
    scopes: JSON.stringify(plan.scopes),
    ttl_ms: plan.ttlMs,
    created_at: plan.now,
    state: set.state,
    revocation: set.revocation,
    expires_at: set.expires_at,
    due_at: set.due_at,
    upstream_expires_at: set.upstream_expires_at ?? null,
    secret_hash: set.secret_hash ?? null,
    ended_at: null,
    end_reason: null,
    settled_at: null,
    attempts: 0,
    stuck_at: null,
    handle: null,
  }
}

/** The record of a plan. */
export function recordOf({ caller, backend }: Plan, row: CredentialRow): Step[] {
  return [
    { op: 'guard', table: 'agents', id: caller.agentId, version: caller.version },
    { op: 'guard', table: 'backends', id: backend.uid, version: backend.version },
    { op: 'insert', table: 'credentials', row },
  ]
}
