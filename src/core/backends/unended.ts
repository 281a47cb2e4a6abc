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

/** Backends with credentials that have ended and may still work upstream, the longest first; also deleted ones. */
export async function listUnended(core: Parts): Promise<Unended[]> {
  return unendedAmong(core, await core.store.credentials.unended())
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
