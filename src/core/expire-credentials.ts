import type { OpenBackend } from '../backends/registry.ts'
import type { CredentialRow } from '../store/schema.ts'
import { audit } from './audit-entry.ts'
import { type Core, SYSTEM } from './context.ts'
import { agentOf } from './end-upstream.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'meter' | 'settings'>

/** Kinds without an upstream: past its expiry is expired, with one entry each, as one change. */
export async function expireLocal(
  core: Parts,
  backend: OpenBackend,
  rows: readonly CredentialRow[],
): Promise<void> {
  const ended = rows.filter((row) => row.state === 'active')
  const entries = ended.map((row) => expiredEntry(core, row))
  const outcome = await core.store.commit(
    [
      core.store.credentials.finishActive(
        ended.map((row) => row.id),
        'expired',
        'expired',
        core.store.now(),
      ),
      ...entries,
    ],
    { urgent: true },
  )
  if (outcome.done) {
    core.meter.expired(backend.name, ended.length)
    return
  }
  // Somebody revoked one of them meanwhile: one by one, each either ours or theirs.
  for (const row of ended) {
    const steps = [
      core.store.credentials.finishActive([row.id], 'expired', 'expired', core.store.now()),
      expiredEntry(core, row),
    ]
    if ((await core.store.commit(steps, { urgent: true })).done) core.meter.expired(backend.name, 1)
  }
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
          : core.store.credentials.finishActive([row.id], 'expired', 'expired', now)
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
