import { withDeadline } from '../../domain/abort.ts'
import type { Credential } from '../../domain/credential.ts'
import type { Core } from '../context.ts'
import { settleUpstream } from './settle-upstream.ts'

/** How long a reply waits for the upstream, in ms; the revocation continues without it. */
const WAIT_MS = 3_000

/**
 * Begins to settle a `revoking` credential that this request has claimed. Says whether it is settled, and never rejects.
 * Undefined: it is left to the sweeper. `onFailure` is told why it is not settled.
 */
export async function settleNow(
  core: Core,
  credential: Credential,
  onFailure?: (error: unknown) => void,
): Promise<{ readonly settled: Promise<boolean> } | undefined> {
  const backends = await core.backends.at(await core.store.generation())
  const backend = backends.byUid.get(credential.backendUid)
  if (backend === undefined) return undefined
  const { lanes } = backend
  if (!lanes.mayTry(credential.agentId)) {
    // Too many revocations are under way, perhaps held up: the sweeper gives every agent its turn.
    const { credentials, now } = core.store
    await core.store.commit([credentials.release([credential.id], now())], { urgent: true })
    return undefined
  }
  const end = lanes.begin(credential.agentId)
  const settled = settleUpstream(core, backend, credential, onFailure).catch((error: unknown) => {
    core.log.error(
      { err: error, credential: credential.id },
      'the revocation could not be recorded; the sweeper will continue it',
    )
    return false
  })
  void settled.then((isSettled) => end(isSettled ? 'settled' : 'failed'))
  return { settled }
}

/** Waits for it no longer than a reply may; false if that was too short. */
export function inTime<T>(settled: Promise<T>, waitMs = WAIT_MS): Promise<T | false> {
  return withDeadline(waitMs, () => settled).catch(() => false as const)
}
