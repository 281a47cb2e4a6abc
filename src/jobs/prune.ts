import type { Core } from '../core/context.ts'
import { lowestBodyAt } from '../domain/ids.ts'

/** Rows of one commit. */
const SLICE = 500

/**
 * Drops audit entries, and credentials that have ended, from before the retention; a credential is kept at least
 * as long as the entries about it. Returns whether there is more.
 */
export async function prune(
  core: Pick<Core, 'store'>,
  retentionMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const before = core.store.now() - retentionMs
  if (signal.aborted) return false
  const { store } = core
  const [entries, credentials] = await Promise.all([
    store.audit.oldest(lowestBodyAt(before), SLICE),
    store.credentials.oldestEnded(before, SLICE),
  ])
  const steps = [
    ...(entries.length > 0 ? [store.audit.drop(entries)] : []),
    ...(credentials.length > 0 ? [store.credentials.drop(credentials)] : []),
  ]
  if (steps.length > 0) await store.commit(steps, { urgent: true })
  return entries.length === SLICE || credentials.length === SLICE
}
