import type { Core } from '../context.ts'

/** What a backend still has to end upstream. */
export interface Unended {
  readonly backend: string
  readonly count: number
  /** Epoch ms at which the first of them ended in Mayfly. */
  readonly since: number
}

/** Backends with credentials that have ended and may still work upstream, the longest first; also deleted ones. */
export async function listUnended(core: Pick<Core, 'store' | 'backends'>): Promise<Unended[]> {
  const { byUid } = await core.backends.at(await core.store.generation())
  const found = await core.store.credentials.unended()
  const all = [...found].map(([uid, unended]) => ({ backend: byUid.get(uid)?.name ?? uid, ...unended }))
  return all.sort((a, b) => a.since - b.since)
}
