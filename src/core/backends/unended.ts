import type { Unended as Counted } from '../../store/tables/counts.ts'
import type { Core } from '../context.ts'
import { keptFor } from '../kept-for.ts'

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

/** Up to this many are counted anew for each who asks, which takes SQLite some 25 ms. A larger count is kept (`keptFor`). */
const MOST_EACH_TIME = 10_000

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
    kept = count > mostEachTime ? { counted, until: end + keptFor(end - begun) } : undefined
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
