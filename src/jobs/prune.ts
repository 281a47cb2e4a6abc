import type { Core } from '../core/context.ts'
import { lowestBodyAt } from '../domain/ids.ts'

/** Rows of one commit. */
const SLICE = 500

/**
 * Drops audit entries, and credentials, agents and enrollments that have ended, from before the retention; each is
 * kept at least as long as the entries about it, and those about a credential as long as it lives. Returns whether
 * there is more.
 */
export async function prune(
  core: Pick<Core, 'store'>,
  retentionMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const before = core.store.now() - retentionMs
  if (signal.aborted) return false
  const { audit, credentials, agents, enrollments, commit } = core.store
  const old = await Promise.all([
    audit.oldest(lowestBodyAt(before), SLICE),
    credentials.oldestSettled(before, SLICE),
    agents.oldestEnded(before, SLICE),
    enrollments.oldestDecided(before, SLICE),
  ])
  const [oldEntries, oldCredentials, oldAgents, oldEnrollments] = old
  const steps = [
    ...(oldEntries.length > 0 ? [audit.drop(oldEntries)] : []),
    ...(oldCredentials.length > 0 ? [credentials.drop(oldCredentials)] : []),
    ...(oldAgents.length > 0 ? agents.drop(oldAgents) : []),
    ...(oldEnrollments.length > 0 ? [enrollments.drop(oldEnrollments)] : []),
  ]
  if (steps.length > 0) await commit(steps, { urgent: true, bulk: true })
  return old.some((ids) => ids.length === SLICE)
}
