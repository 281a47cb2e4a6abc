import type { Unended as Counted } from '../../store/tables/counts.ts'
import type { Core } from '../context.ts'

/** What a backend still has to end upstream. */
export interface Unended {
  readonly uid: string
  /** Its name; of a deleted one its uid. */
  readonly backend: string
  readonly count: number
  /** Epoch ms at which the first of them ended in Mayfly. */
  readonly since: number
}

type Parts = Pick<Core, 'store' | 'backends'>

/** As many are counted for each who asks: some 25 ms of SQLite. */
const MOST_EACH_TIME = 10_000
/** A count of more is good for this times what it took, so that counting takes a twentieth of one core at most. */
const FRESH_PER_TAKEN = 20
const MOST_FRESH_MS = 20_000

export function createUnendedCount(
  { store }: Pick<Core, 'store'>,
  { mostEachTime = MOST_EACH_TIME, now = () => performance.now() } = {},
): Core['unended'] {
  let kept: { readonly counted: ReadonlyMap<string, Counted>; readonly until: number } | undefined
  return async () => {
    const begun = now()
    if (kept !== undefined && begun < kept.until) return kept.counted
    const counted = await store.credentials.unended()
    const end = now()
    const count = [...counted.values()].reduce((sum, one) => sum + one.count, 0)
    const until = end + Math.min(MOST_FRESH_MS, FRESH_PER_TAKEN * (end - begun))
    kept = count > mostEachTime ? { counted, until } : undefined
    return counted
  }
}

/** Backends with credentials that have ended and may still work upstream, the longest first; also deleted ones. */
export async function listUnended(core: Parts & Pick<Core, 'unended'>): Promise<Unended[]> {
  return unendedAmong(core, await core.unended())
}

/** As `listUnended`, of what was counted, by the uid of the backend. */
export async function unendedAmong(
  core: Parts,
  counted: ReadonlyMap<string, Omit<Unended, 'uid' | 'backend'>>,
): Promise<Unended[]> {
  const { byUid } = await core.backends.at(await core.store.generation())
  const all = [...counted].map(([uid, unended]) => ({
    uid,
    backend: byUid.get(uid)?.name ?? uid,
    ...unended,
  }))
  return all.sort((a, b) => a.since - b.since)
}
