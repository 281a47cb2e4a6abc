import type { OpenBackend } from '../../backends/open-backends.ts'
import type { Credential } from '../../domain/credential.ts'
import { audit, traceOf } from '../audit/entry.ts'
import { claimedUntil } from '../backends/call-upstream.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { about, unfindable } from './settle-upstream.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'meter' | 'settings'>

/**
 * For kinds without an upstream: ends up to `limit` expired credentials, with one entry each, as one change. Returns
 * how many it ended; undefined when one of them was revoked in the meantime, and nothing was done.
 */
export async function expireLocal(
  core: Parts,
  backend: OpenBackend,
  limit: number,
): Promise<number | undefined> {
  const now = core.store.now()
  const ids = await core.store.credentials.expired(backend.uid, now, limit)
  if (ids.length === 0) return 0
  const steps = core.store.credentials.expireAll(ids, now, traceOf(SYSTEM))
  if (!(await core.store.commit(steps, { urgent: true, bulk: true })).done) return undefined
  core.meter.expired(backend.name, ids.length)
  return ids.length
}

/**
 * Brings a due credential of an upstream to `revoking`: an expired one, or one whose issue a crash interrupted. Returns
 * the credential to settle; undefined when another node has it by now, or nothing is left to do.
 */
export async function takeOver(
  core: Parts,
  backend: OpenBackend,
  credential: Credential,
): Promise<Credential | undefined> {
  switch (credential.state) {
    case 'revoking':
      return credential
    case 'active':
      return expire(core, credential)
    case 'pending':
      return interrupt(core, backend, credential)
    default:
      return undefined
  }
}

async function expire(core: Parts, credential: Credential): Promise<Credential | undefined> {
  const { id, expiresAt: endedAt } = credential
  const now = core.store.now()
  const isExact = credential.revocation === 'exact'
  const end = isExact
    ? core.store.credentials.beginRevoking(id, 'active', 'expired', endedAt, claimedUntil(core, now))
    : core.store.credentials.finishActive(id, 'expired', 'expired', now)
  const entry = audit(core, SYSTEM, { action: 'credential.expired', ...about(credential) })
  if (!(await core.store.commit([end, entry], { urgent: true })).done) return undefined
  core.meter.expired(credential.backend, 1)
  return isExact
    ? { ...credential, state: 'revoking', endReason: 'expired', endedAt, attempts: 0 }
    : undefined
}

async function interrupt(
  core: Parts,
  backend: OpenBackend,
  credential: Credential,
): Promise<Credential | undefined> {
  const { id, agentId } = credential
  const { credentials, idempotency } = core.store
  const now = core.store.now()
  const reason = 'interrupted'
  const change = [
    credentials.beginRevoking(id, 'pending', reason, now, claimedUntil(core, now)),
    // The caller heard nothing and may try again with the same Idempotency-Key.
    idempotency.releaseOf(agentId, id),
    audit(core, SYSTEM, {
      action: 'credential.revoked',
      ...about(credential),
      details: { reason, ...unfindable(backend) },
    }),
  ]
  if (!(await core.store.commit(change, { urgent: true })).done) return undefined
  return { ...credential, state: 'revoking', endReason: reason, endedAt: now, attempts: 0 }
}
