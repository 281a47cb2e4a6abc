import type { AuditTrace } from './audit-entry.ts'
import type { HealthReason } from './backend-health.ts'
import type { UseRules } from './use.ts'

/** A configured backend as it is stored. Times in epoch ms. */
export interface StoredBackend {
  readonly uid: string
  readonly name: string
  /** Its kind. */
  readonly type: string
  /** JSON, sealed; null once the last credential of a deleted backend is settled. */
  readonly sealedConfig: string | null
  readonly defaultTtlMs: number
  readonly maxTtlMs: number
  /** Null permits every scope. */
  readonly allowedScopes: readonly string[] | null
  readonly description: string | null
  /** As it was written: `10/hour`. */
  readonly rate: string | null
  readonly maxActive: number | null
  /** Grows with every change. */
  readonly version: number
  readonly createdAt: number
  readonly changedAt: number
  /** When it was deleted. */
  readonly endedAt: number | null
  /** While it is being deleted, and many of its credentials have not ended yet. */
  readonly ending: BackendEnding | null
  /** A rotation of its root secret that has not ended (ADR 0033): JSON, sealed. */
  readonly sealedRotation: string | null
  /** The age at which its root secret should be replaced. */
  readonly rotateRootAfterMs: number | null
  /** When its root secret was last entered or replaced; null: when it was created, or before this was recorded. */
  readonly rootSetAt: number | null
  /** Where and how its credentials are used, beside what its kind says. */
  readonly uses: UseRules | null
}

export interface BackendEnding {
  /** Epoch ms. */
  readonly since: number
  /** Who deletes it, for the audit entries of its credentials. */
  readonly by: AuditTrace
}

/** Where `meta` holds what the kind of this backend keeps. */
export function backendStateKey(uid: string): string {
  return `state.${uid}`
}

/** Where the store keeps the time of the next look for what is left upstream. */
export function backendReconcileKey(uid: string): string {
  return `reconcile|${uid}`
}

/** Where the store keeps whether the upstream was last recorded as `up` or `down`. */
export function backendHealthKey(uid: string): string {
  return `health|${uid}`
}

/** Where the store keeps the last root secret whose age was recorded, by the time since when it is there. */
export function rootToldKey(uid: string): string {
  return `told|root|${uid}`
}

/** The same of a certificate of the server. */
export function certificateToldKey(sha256: string): string {
  return `told|certificate|${sha256}`
}

/** Where the store keeps when the upstream last ended a credential, and when it last failed to. */
export const REVOKED_PREFIX = 'revoked|'
export const REVOKE_FAILED_PREFIX = 'revoke-failed|'

/** What the tries to end credentials at an upstream have said last. Times in epoch ms. */
export interface Revocations {
  readonly lastSuccess?: number
  readonly lastFailure?: { readonly at: number; readonly reason: HealthReason; readonly credentialId: string }
}

/** All that `meta` holds of this backend. */
export function backendKeys(uid: string): string[] {
  return [
    backendStateKey(uid),
    backendReconcileKey(uid),
    backendHealthKey(uid),
    rootToldKey(uid),
    `${REVOKED_PREFIX}${uid}`,
    `${REVOKE_FAILED_PREFIX}${uid}`,
  ]
}
