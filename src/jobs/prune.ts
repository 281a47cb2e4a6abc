import type { Core } from '../core/context.ts'
import { lowestBodyAt } from '../domain/ids.ts'

/** Rows of each table in one commit. */
const SLICE = 500
/** Rows of the activity, which are small. */
const ACTIVITY_SLICE = 5_000

/**
 * Deletes audit entries, their counts, and ended credentials, runs, agents and enrollments, that are older than the retention. An entry about
 * a credential is deleted together with the credential. One call deletes a slice of each and returns whether more are
 * left.
 */
export function createPrune(
  core: Pick<Core, 'store'>,
  retentionMs: number,
): (signal: AbortSignal) => Promise<boolean> {
  const { audit, activity, credentials, runs, agents, enrollments, commit } = core.store
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
    const oldEntries = entries.filter(({ isKept }) => !isKept).map(({ id }) => id)
    const steps = [
      ...(oldEntries.length > 0 ? [audit.drop(oldEntries)] : []),
      ...(oldCredentials.length > 0
        ? [audit.dropAbout(oldCredentials, beforeId), credentials.drop(oldCredentials)]
        : []),
      ...(oldAgents.length > 0 ? agents.drop(oldAgents) : []),
      ...(oldEnrollments.length > 0 ? [enrollments.drop(oldEnrollments)] : []),
      ...(oldRuns.length > 0 ? [runs.drop(oldRuns)] : []),
      ...(hasOldActivity ? activity.dropAged(before, ACTIVITY_SLICE) : []),
    ]
    if (steps.length > 0) await commit(steps, { urgent: true, bulk: true })
    seen = entries.at(-1)?.id ?? seen
    return old.some((rows) => rows.length === SLICE) || (await activity.hasAged(before))
  }
}
