import type { Core } from '../core/context.ts'
import type { SealedColumn } from '../store/tables/sealed.ts'

type Parts = Pick<Core, 'store' | 'sealer'>

/** Its value is the version under which everything is sealed. */
const DONE_KEY = 'sealed_under'

/**
 * After a newer master key was added, reseals everything that is sealed under older ones, each row only if it has not
 * changed meanwhile. When nothing is left it records the version, and the older keys may be removed. One call handles a
 * slice of one table and returns whether more is left.
 */
export function createRewrap(core: Parts & Pick<Core, 'log'>): (signal: AbortSignal) => Promise<boolean> {
  const { store, sealer, log } = core
  const newest = sealer.newestVersion
  let columns: SealedColumn[] = []
  let after = ''
  let seen: string | undefined | null = null
  let isComplete = true
  const reported = new Set<string>()

  /** A value that no key opens must not keep the others under an old key. Undefined for it. */
  function reseal(at: SealedColumn, id: string, sealed: string): string | undefined {
    try {
      return sealer.seal(at.table, id, at.column, sealer.open(at.table, id, at.column, sealed))
    } catch (error) {
      isComplete = false
      const place = { table: at.table, id, column: at.column }
      if (!reported.has(JSON.stringify(place)))
        log.error(
          { err: error, ...place },
          'a sealed value cannot be opened; older master keys must stay until it is gone',
        )
      reported.add(JSON.stringify(place))
      return undefined
    }
  }

  return async (signal) => {
    const noted = await store.meta.get(DONE_KEY)
    if (noted !== seen) {
      // Another node may have found values under an older key, so that all columns are checked again.
      columns = [...store.sealed.columns]
      after = ''
      seen = noted
      isComplete = true
    }
    if (noted === String(newest)) return false
    const [at] = columns
    if (at === undefined) {
      if (!isComplete) {
        // The next run looks at everything again.
        seen = null
        return false
      }
      if (await store.sealed.hasOtherReply([newest])) return false
      if (!(await note(store, noted, String(newest)))) return false
      seen = String(newest)
      if (noted !== undefined)
        log.info(
          { version: newest },
          'everything is sealed under the newest master key; older ones may be removed',
        )
      return false
    }
    const { others, last } = await store.sealed.slice(at, after, [newest])
    for (const { id, sealed } of others) {
      if (signal.aborted) return false
      const fresh = reseal(at, id, sealed)
      if (fresh === undefined) continue
      await store.commit([store.sealed.replace(at, id, sealed, fresh)])
    }
    after = last ?? ''
    if (last === undefined) columns.shift()
    return !signal.aborted
  }
}

/**
 * For a start with fewer master keys than the last one. Throws when a value, perhaps written by another node, is still
 * sealed under a missing key: it could never be opened again.
 */
export async function requireNothingLeftBehind({ store, sealer }: Parts): Promise<void> {
  if (!(await isLeftBehind(store, sealer.versions))) return
  // So that the value is resealed once the key is back.
  await note(store, await store.meta.get(DONE_KEY), '')
  throw new Error(
    'data is still sealed under a master key that is missing: put its line back, start, and remove it once the log says that it may be removed',
  )
}

async function isLeftBehind(store: Parts['store'], versions: readonly number[]): Promise<boolean> {
  for (const at of store.sealed.columns) {
    let after: string | undefined = ''
    while (after !== undefined) {
      const { others, last } = await store.sealed.slice(at, after, versions)
      if (others.length > 0) return true
      after = last
    }
  }
  return false
}

/** False when another node has recorded something meanwhile. */
async function note(store: Parts['store'], noted: string | undefined, version: string): Promise<boolean> {
  if (noted === version) return true
  const { add, replace } = store.meta
  const step = noted === undefined ? add(DONE_KEY, version) : replace(DONE_KEY, noted, version)
  return (await store.commit([step])).done
}
