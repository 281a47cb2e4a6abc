import { Problem } from '../../domain/problems.ts'
import { isRunning, type OwnEndReason, type Run, type RunEndReason } from '../../domain/run.ts'
import { claimedUntil } from '../backends/call-upstream.ts'
import { type Actor, type AgentCaller, SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { endRuns } from '../runs/end-run.ts'
import { findAnyRun, findOwnRun } from '../runs/find-run.ts'
import { inTime, settleNow } from './settle-now.ts'

/** How often a run is read again because something else ended it, or one of its credentials, at the same time. */
const TRIES = 5
/** Credentials that a request ends upstream itself; more of them are the sweeper's. */
const MOST = 64

/**
 * Ends the caller's own run. One that has ended stays as it is. The end is durable before the reply, which waits for the upstream as
 * that of a revocation does. Throws `not_found`.
 */
export async function endOwnRun(
  core: Core,
  actor: Actor<AgentCaller>,
  id: string,
  reason: OwnEndReason = 'completed',
): Promise<void> {
  await endFound(core, actor, () => findOwnRun(core, actor.caller, id), reason)
}

/** As `endOwnRun`, for any run. */
export async function endRun(core: Core, actor: Actor, id: string): Promise<void> {
  await endFound(core, actor, () => findAnyRun(core, id), 'ended_by')
}

async function endFound(
  core: Core,
  actor: Actor,
  find: () => Run | Promise<Run>,
  reason: RunEndReason,
): Promise<void> {
  for (let tries = 1; tries <= TRIES; tries += 1) if (await endNow(core, actor, await find(), reason)) return
  throw new Problem('conflict')
}

/** False: something ended the run, or one of its credentials, meanwhile. */
async function endNow(core: Core, actor: Actor, run: Run, reason: RunEndReason): Promise<boolean> {
  if (run.endedAt !== null) return true
  const { credentials, now } = core.store
  // What is issued after this look is due at once, and the sweeper's.
  const ids = await credentials.exactOfRun(run.id, MOST)
  const claim = ids.length === 0 ? [] : [credentials.claimOfRun(ids, claimedUntil(core, now()))]
  // The job has not reached it yet: this does its work early, and the truthful reason is its own.
  const [by, why] = isRunning(run, now()) ? ([actor, reason] as const) : ([SYSTEM, 'expired'] as const)
  if ((await endRuns(core, by, [run.id], why, claim)) === 0) return false
  if (ids.length > 0) await inTime(settleAll(core, ids))
  return true
}

/** Never rejects: the end is durable, and what is not settled here is the sweeper's. */
async function settleAll(core: Core, ids: readonly string[]): Promise<void> {
  try {
    // What something else ended before the run did is not ours.
    const ours = await core.store.credentials.unsettledOfRun(ids)
    const begun = await Promise.all(ours.map((credential) => settleNow(core, credential)))
    await Promise.all(begun.map((one) => one?.settled))
  } catch (error) {
    core.log.error({ err: error }, 'credentials of a run could not be revoked at once; the sweeper does it')
  }
}
