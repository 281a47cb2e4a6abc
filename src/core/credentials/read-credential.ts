import type { HealthReason } from '../../domain/backend-health.ts'
import { type Credential, type EndReason, type Status, statusAt } from '../../domain/credential.ts'
import type { Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { findVisible, type UpstreamEnd, upstreamEnd } from './revoke-credential.ts'

/** The public part of a credential; never its secret. Times in epoch ms. */
export interface CredentialView {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly backend: string
  /** The run that it ends with. */
  readonly runId: string | null
  readonly scopes: readonly string[]
  readonly status: Status
  readonly createdAt: number
  readonly expiresAt: number
  readonly upstreamExpiresAt: number | null
  /** Set when it was revoked, not when it merely expired. */
  readonly revokedAt: number | null
  /** Whether it is gone at its upstream; set when it has ended. */
  readonly upstream: UpstreamEnd | null
  /** Null while it lives. */
  readonly endedAt: number | null
  readonly endReason: EndReason | null
  /** While its upstream has not confirmed its end. */
  readonly ending: Ending | undefined
}

/** How far the tries to end a credential upstream are. */
export interface Ending {
  /** Failed tries in a row. */
  readonly attempts: number
  readonly nextTry: number | null
  readonly isStuck: boolean
  readonly failure: HealthReason | null
}

/** Throws `credential_not_found`, also for another agent's without `scope`. */
export async function readCredential(
  core: Pick<Core, 'store'>,
  caller: Caller,
  id: string,
  scope?: string,
): Promise<CredentialView> {
  return viewOf(await findVisible(core, caller, id, scope), core.store.now())
}

export function viewOf(credential: Credential, now: number): CredentialView {
  const { state, expiresAt, endReason, endedAt } = credential
  const status = statusAt(state, expiresAt, endReason, now)
  return {
    id: credential.id,
    agentId: credential.agentId,
    agentName: credential.agentName,
    backend: credential.backend,
    runId: credential.runId,
    scopes: credential.scopes,
    status,
    createdAt: credential.createdAt,
    expiresAt,
    upstreamExpiresAt: credential.upstreamExpiresAt,
    revokedAt: status === 'revoked' ? endedAt : null,
    upstream: status === 'active' ? null : upstreamEnd(credential),
    ...endOf(credential, status),
  }
}

/** One that has expired ended then, whether or not the sweeper has come to it. */
function endOf(
  { state, endedAt, endReason, expiresAt, attempts, dueAt, stuckAt, failure }: Credential,
  status: Status,
): Pick<CredentialView, 'endedAt' | 'endReason' | 'ending'> {
  if (status === 'active') return { endedAt: null, endReason: null, ending: undefined }
  const isUnswept = state === 'active'
  return {
    endedAt: isUnswept ? expiresAt : endedAt,
    endReason: isUnswept ? 'expired' : endReason,
    ending:
      state === 'revoking'
        ? { attempts, nextTry: dueAt, isStuck: stuckAt !== null, failure: attempts > 0 ? failure : null }
        : undefined,
  }
}
