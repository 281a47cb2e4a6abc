import type { OpenBackend } from '../../backends/registry.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import { audit, traceOf } from '../audit/entry.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { agentOf } from './settle-upstream.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'meter' | 'settings'>

/**
 * Kinds without an upstream: past its expiry is expired, with one entry each, as one change. Returns how many it
 * ended; undefined when somebody revoked one of them meanwhile, and nothing was done.
 */
export async function expireLocal(
  core: Parts,
  backend: OpenBackend,
  limit: number,
): Promise<number | undefined> {
  const now = core.store.now()
  const ids = await core.store.credentials.expired(backend.uid, now, limit)
  if (ids.length === 0) return 0
  const steps = core.store.credentials.expireAll(ids, now, traceOf(undefined, SYSTEM))
  if (!(await core.store.commit(steps, { urgent: true, bulk: true })).done) return undefined
  core.meter.expired(backend.name, ids.length)
  return ids.length
}

function expiredEntry(core: Parts, row: CredentialRow) {
  return audit(core, undefined, SYSTEM, {
    action: 'credential.expired',
    agent: agentOf(row),
    backend: row.backend,
    credentialId: row.id,
  })
}

/**
 * What is due at an upstream, brought to `revoking`: an expired one, or one whose issue was interrupted by a
 * crash. Returns the row to settle; undefined when it is somebody else's by now.
 */
export async function takeOver(core: Parts, row: CredentialRow): Promise<CredentialRow | undefined> {
  const now = core.store.now()
  switch (row.state) {
    case 'revoking':
      return row
    case 'active': {
      const steps =
        row.revocation === 'exact'
          ? core.store.credentials.endActive(row.id, 'expired', row.expires_at, now + CLAIM_MS)
          : core.store.credentials.finishActive(row.id, 'expired', 'expired', now)
      const outcome = await core.store.commit([steps, expiredEntry(core, row)], { urgent: true })
      if (outcome.done) core.meter.expired(row.backend, 1)
      return outcome.done && row.revocation === 'exact'
        ? { ...row, state: 'revoking', end_reason: 'expired', ended_at: row.expires_at, attempts: 0 }
        : undefined
    }
    case 'pending': {
      const entry = audit(core, undefined, SYSTEM, {
        action: 'credential.revoked',
        agent: agentOf(row),
        backend: row.backend,
        credentialId: row.id,
        details: { reason: 'interrupted' },
      })
      const interrupted = core.store.credentials.interrupt(row.id, now, now + CLAIM_MS, null)
      // Whoever asked heard nothing, and may ask again with the same Idempotency-Key.
      const forgotten = core.store.tokens.forgetIdempotentOf(row.agent_id, row.id)
      const outcome = await core.store.commit([interrupted, forgotten, entry], { urgent: true })
      return outcome.done
        ? { ...row, state: 'revoking', end_reason: 'interrupted', ended_at: now, attempts: 0 }
        : undefined
    }
    default:
      return undefined
  }
}

/** For as long no other node takes it up. */
const CLAIM_MS = 30_000
