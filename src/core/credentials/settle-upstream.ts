import type { Handle } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { type Credential, endState } from '../../domain/credential.ts'
import { RETRY_BASE_MS, RETRY_CAP_MS, STUCK_AFTER } from '../../domain/limits.ts'
import { retryDelay } from '../../domain/retry-delay.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import {
  asProblem,
  BreakerOpen,
  callEntered,
  certainAt,
  describe,
  enterUpstream,
  isToldAlready,
  UNASKED,
} from '../backends/call-upstream.ts'
import { reasonOfCheck } from '../backends/health.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'

/** One statement changes every waiting credential, so it runs no more often than this. */
const WAKE_EVERY_MS = 5_000
const wokenAt = new WeakMap<OpenBackend, number>()

/**
 * Brings one `revoking` credential to its end: revokes it upstream, then records that it is gone. Retries for ever;
 * after six failures the credential is also marked stuck. Returns whether it is settled; `onFailure` is told why it is not.
 */
export async function settleUpstream(
  core: Core,
  backend: OpenBackend,
  credential: Credential,
  onFailure?: (error: unknown) => void,
): Promise<boolean> {
  const wasFailing = credential.attempts > 0 || backend.breakers.revoking.isTrying()
  try {
    if ((await revokeAt(core, backend, credential)) === 'ended')
      core.revocations.succeeded(backend.uid, core.store.now())
  } catch (error) {
    onFailure?.(error)
    if (error instanceof BreakerOpen) {
      // Nothing was tried, so nothing failed: it stays due, and the sweeper waits for the breaker.
      await postpone(core, credential, core.store.now())
      return false
    }
    await recordRetry(core, backend, credential, error)
    core.meter.revoked(backend.name, 'failed')
    return false
  }
  const now = core.store.now()
  const certain = certainAt(core, credential.createdAt)
  if (credential.sealedHandle === null && now < certain) {
    // No answer ever arrived: the issue may still be under way, so look once more when it can no longer be.
    await postpone(core, credential, certain)
    return false
  }
  const state = endState(credential.endReason ?? 'revoked')
  const settled = await core.store.commit(
    [
      core.store.credentials.settle(credential.id, state, now),
      audit(core, SYSTEM, {
        action: 'credential.settled',
        ...about(credential),
        details: { state, ...(credential.sealedHandle === null ? unfindable(backend) : {}) },
      }),
    ],
    { urgent: true },
  )
  core.meter.revoked(backend.name, 'ok')
  if (wasFailing) await wakeOthers(core, backend)
  return settled.done
}

/** The upstream works again: revocations that wait up to 15 minutes for their next attempt are due at once. */
async function wakeOthers(core: Core, backend: OpenBackend): Promise<void> {
  const now = performance.now()
  if (now - (wokenAt.get(backend) ?? Number.NEGATIVE_INFINITY) < WAKE_EVERY_MS) return
  wokenAt.set(backend, now)
  await core.store.commit([core.store.credentials.wake(backend.uid, core.store.now())], { urgent: true })
}

/** `ended`: the upstream was asked, and did it. */
async function revokeAt(
  core: Core,
  backend: OpenBackend,
  { id, sealedHandle }: Credential,
): Promise<'ended' | undefined> {
  if (backend.kind.revocation !== 'exact') return undefined
  const entered = enterUpstream(backend, 'revoking')
  const answer = await callEntered(core, backend, entered, async (instance, signal) => {
    const handle = sealedHandle === null ? instance.recover?.(id) : openHandle(core, id, sealedHandle)
    if (handle === undefined) return UNASKED
    return instance.revoke?.(handle, signal)
  })
  return answer === UNASKED ? undefined : 'ended'
}

async function postpone(core: Core, credential: Credential, dueAt: number): Promise<void> {
  const { id, attempts, stuckAt, failure } = credential
  const step = core.store.credentials.postpone(id, { attempts, dueAt, stuckAt, failure })
  await core.store.commit([step], { urgent: true })
}

async function recordRetry(
  core: Core,
  upstream: OpenBackend,
  credential: Credential,
  error: unknown,
): Promise<void> {
  const attempts = credential.attempts + 1
  const now = core.store.now()
  const stuckAt = credential.stuckAt ?? (attempts >= STUCK_AFTER ? now : null)
  const dueAt = now + retryDelay(attempts, Math.random(), RETRY_BASE_MS, RETRY_CAP_MS)
  core.log[isToldAlready(core, upstream, error) ? 'debug' : 'warn'](
    {
      credential: credential.id,
      backend: credential.backend,
      attempts,
      stuck: stuckAt !== null,
      detail: describe(error),
    },
    'the upstream did not revoke; it will be tried again',
  )
  const reason = reasonOfCheck(error)
  core.revocations.failed(upstream.uid, { at: now, reason, credentialId: credential.id })
  const delay = { attempts, dueAt, stuckAt, failure: reason }
  const steps: Step[] = [core.store.credentials.postpone(credential.id, delay)]
  // One entry for the first failure and one when it is stuck: endless retries must not fill the audit.
  if (attempts === 1 || (stuckAt !== null && credential.stuckAt === null)) {
    steps.push(
      audit(core, SYSTEM, {
        action: 'credential.revoke_failed',
        outcome: 'failed',
        ...about(credential),
        details: { attempts, stuck: stuckAt !== null, code: asProblem(error).code },
      }),
    )
  }
  await core.store.commit(steps, { urgent: true })
}

function openHandle(core: Core, id: string, sealed: string): Handle {
  return JSON.parse(core.sealer.open('credentials', id, 'handle', sealed)) as Handle
}

/** For the entry of an issue without an answer, if the kind cannot find what the issue may have left upstream. */
export function unfindable({ kind }: Pick<OpenBackend, 'kind'>): { readonly recover?: 'none' } {
  return kind.recovery === undefined ? {} : { recover: kind.recovery }
}

/** The part that every audit entry about a credential has. */
export function about({ id, agentId, agentName, backend, runId }: Credential) {
  return { agent: { id: agentId, name: agentName }, backend, credentialId: id, runId }
}
