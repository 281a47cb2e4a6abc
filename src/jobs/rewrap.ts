import type { Core } from '../core/context.ts'

/** Rows of one commit. */
const SLICE = 100
const DONE_KEY = 'sealed_under'

/**
 * After a newer master key was added, what is sealed under older ones is sealed anew, a few rows at a time and
 * each only where it has not changed meanwhile. When nothing is left the version is noted, and the older keys may
 * be removed. Returns whether there is more.
 */
export async function rewrap(
  core: Pick<Core, 'store' | 'sealer' | 'log'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { store, sealer } = core
  const noted = await store.meta.get(DONE_KEY)
  if (noted === String(sealer.newestVersion)) return false
  for (const at of store.sealed.columns) {
    if (signal.aborted) return false
    const some = await store.sealed.listOther(at, sealer.newestVersion, SLICE)
    for (const { id, sealed } of some) {
      const fresh = sealer.seal(at.table, id, at.column, sealer.open(at.table, id, at.column, sealed))
      await store.commit([store.sealed.replace(at, id, sealed, fresh)])
    }
    if (some.length > 0) return true
  }
  const version = String(sealer.newestVersion)
  await store.commit([
    noted === undefined ? store.meta.add(DONE_KEY, version) : store.meta.replace(DONE_KEY, noted, version),
  ])
  if (noted !== undefined)
    core.log.info({ version }, 'everything is sealed under the newest master key; older ones may be removed')
  return false
}
