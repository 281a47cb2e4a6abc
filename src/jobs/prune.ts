import type { Core } from '../core/context.ts'
import { lowestBodyAt } from '../domain/ids.ts'

/** Rows of one commit. */
const SLICE = 500

/**
 * Drops audit entries, and credentials, agents and enrollments that have ended, from before the retention. An entry
 * about a credential is kept for as long as that is on record, and goes with it. One turn is a slice of each, and says
 * whether there is more.
 */
export function createPrune(
  core: Pick<Core, 'store'>,
  retentionMs: number,
): (signal: AbortSignal) => Promise<boolean> {
  const { audit, credentials, agents, enrollments, commit } = core.store
  // Entries up to here were looked at since the start: those that are left are never read again to no purpose.
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
    ])
    const [entries, oldCredentials, oldAgents, oldEnrollments] = old
    const oldEntries = entries.filter(({ isKept }) => !isKept).map(({ id }) => id)
    const steps = [
      ...(oldEntries.length > 0 ? [audit.drop(oldEntries)] : []),
      ...(oldCredentials.length > 0
        ? [audit.dropAbout(oldCredentials, beforeId), credentials.drop(oldCredentials)]
        : []),
      ...(oldAgents.length > 0 ? agents.drop(oldAgents) : []),
      ...(oldEnrollments.length > 0 ? [enrollments.drop(oldEnrollments)] : []),
    ]
    if (steps.length > 0) await commit(steps, { urgent: true, bulk: true })
    seen = entries.at(-1)?.id ?? seen
    return old.some((rows) => rows.length === SLICE)
  }
}
