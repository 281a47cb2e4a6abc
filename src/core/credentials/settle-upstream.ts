import type { Handle } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/registry.ts'
import { type EndReason, endState, retryDelay } from '../../domain/credential.ts'
import { RETRY_BASE_MS, RETRY_CAP_MS, STUCK_AFTER } from '../../domain/limits.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import { audit } from '../audit/entry.ts'
import { asProblem, callUpstream, certainAt, describe, NotAsked } from '../backends/call-upstream.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'sealer' | 'settings' | 'ids' | 'meter' | 'log' | 'random'>

/**
 * Brings one `revoking` credential to its end: revokes upstream, then records that it is gone. Never gives up;
 * after six failures it is also marked stuck. Returns whether it is settled.
 */
export async function settleUpstream(
  core: Parts,
  backend: OpenBackend,
  row: CredentialRow,
): Promise<boolean> {
  try {
    await revokeAt(core, backend, row)
  } catch (error) {
    if (error instanceof NotAsked) {
      await waitForIt(core, row, error.waitMs)
      return false
    }
    await recordRetry(core, row, error)
    core.meter.revoked(backend.name, 'failed')
    return false
  }
  const now = core.store.now()
  const certain = certainAt(core, row.created_at)
  if (row.handle === null && now < certain) {
    // Never seen to be issued: the call may still be under way, so look once more when it cannot be.
    await core.store.commit([core.store.credentials.postpone(row.id, row.attempts, certain, row.stuck_at)], {
      urgent: true,
    })
    return false
  }
  const state = endState((row.end_reason ?? 'revoked') as EndReason)
  const settled = await core.store.commit(
    [
      core.store.credentials.settle(row.id, state, now),
      audit(core, undefined, SYSTEM, {
        action: 'credential.settled',
        agent: agentOf(row),
        backend: row.backend,
        credentialId: row.id,
        details: { state },
      }),
    ],
    { urgent: true },
  )
  core.meter.revoked(backend.name, 'ok')
  return settled.done
}

async function revokeAt(core: Parts, backend: OpenBackend, row: CredentialRow): Promise<void> {
  if (backend.kind.revocation !== 'exact') return
  await callUpstream(core, backend, async (instance, signal) => {
    const handle = row.handle === null ? instance.recover?.(row.id) : openHandle(core, row.id, row.handle)
    if (handle !== undefined) await instance.revoke?.(handle, signal)
  })
}

/** What the breaker held back has not failed: it is due as soon as the upstream may be asked, however often it was. */
async function waitForIt(core: Parts, row: CredentialRow, waitMs: number): Promise<void> {
  const dueAt = core.store.now() + waitMs
  await core.store.commit([core.store.credentials.postpone(row.id, row.attempts, dueAt, row.stuck_at)], {
    urgent: true,
  })
}

async function recordRetry(core: Parts, row: CredentialRow, error: unknown): Promise<void> {
  const attempts = row.attempts + 1
  const now = core.store.now()
  const stuck = row.stuck_at ?? (attempts >= STUCK_AFTER ? now : null)
  const dueAt = now + retryDelay(attempts, core.random(), RETRY_BASE_MS, RETRY_CAP_MS)
  core.log.warn(
    { credential: row.id, backend: row.backend, attempts, stuck: stuck !== null, detail: describe(error) },
    'the upstream did not revoke; it will be tried again',
  )
  const steps: Step[] = [core.store.credentials.postpone(row.id, attempts, dueAt, stuck)]
  // One entry when it first fails and one when it is stuck: retries for ever must not fill the audit.
  if (attempts === 1 || (stuck !== null && row.stuck_at === null)) {
    steps.push(
      audit(core, undefined, SYSTEM, {
        action: 'credential.revoke_failed',
        outcome: 'failed',
        agent: agentOf(row),
        backend: row.backend,
        credentialId: row.id,
        details: { attempts, stuck: stuck !== null, code: asProblem(error).code },
      }),
    )
  }
  await core.store.commit(steps, { urgent: true })
}

function openHandle(core: Parts, id: string, sealed: string): Handle {
  return JSON.parse(core.sealer.open('credentials', id, 'handle', sealed)) as Handle
}

export function agentOf(row: CredentialRow): { id: string; name: string } {
  return { id: row.agent_id, name: row.agent_name }
}
