import type { Core } from '../core/context.ts'
import { lowestBodyAt } from '../domain/ids.ts'

/** Rows of each table in one commit. */
const SLICE = 500
/** Rows of the activity, which are small. */
const ACTIVITY_SLICE = 5_000
/** Batches of requests, which are up to 64 KiB each. */
const REQUESTS_SLICE = 100

/**
 * Deletes audit entries, their counts, and ended credentials, runs with their requests, agents and enrollments, that are older than the retention. An entry about
 * a credential is deleted together with the credential. One call deletes a slice of each and returns whether more are
 * left.
 */
export function createPrune(
  core: Pick<Core, 'store'>,
  retentionMs: number,
): (signal: AbortSignal) => Promise<boolean> {
  const { audit, activity, credentials, runs, runRequests, agents, enrollments, commit } = core.store
  // Entries up to here have been read since the start, so that kept ones are not read again.
  let seen = ''
  return async (signal) => {
    if (signal.aborted) return false
    const before = core.store.now() - retentionMs
    const beforeId = lowestBodyAt(before)
    const old = await Promise.all([
      audit.aged(seen, beforeId, SLICE),
      credentials.oldestSettled(before, SLICE),
      agents.oldestEnded(before, SLICE),
      enrollments.oldestDecided(before, SLICE),
      runs.oldestEnded(before, SLICE),
    ])
    const hasOldActivity = await activity.hasAged(before)
    const [entries, oldCredentials, oldAgents, oldEnrollments, oldRuns] = old
    const oldRequests = oldRuns.length === 0 ? [] : await runRequests.someOf(oldRuns, REQUESTS_SLICE)
    const oldEntries = entries.filter(({ isKept }) => !isKept).map(({ id }) => id)
    const steps = [
      ...(oldEntries.length > 0 ? [audit.drop(oldEntries)] : []),
      ...(oldCredentials.length > 0
        ? [audit.dropAbout(oldCredentials, beforeId), credentials.drop(oldCredentials)]
        : []),
      ...(oldAgents.length > 0 ? agents.drop(oldAgents) : []),
      ...(oldEnrollments.length > 0 ? [enrollments.drop(oldEnrollments)] : []),
      ...(oldRequests.length > 0 ? [runRequests.drop(oldRuns, oldRequests)] : []),
      // A run goes after the last of its requests.
      ...(oldRuns.length > 0 && oldRequests.length < REQUESTS_SLICE
        ? [runRequests.dropCounts(oldRuns), runs.drop(oldRuns)]
        : []),
      ...(hasOldActivity ? activity.dropAged(before, ACTIVITY_SLICE) : []),
    ]
    if (steps.length > 0) await commit(steps, { urgent: true, bulk: true })
    seen = entries.at(-1)?.id ?? seen
    if (oldRequests.length === REQUESTS_SLICE) return true
    return old.some((rows) => rows.length === SLICE) || (await activity.hasAged(before))
  }
}
