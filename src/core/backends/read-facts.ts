import { setImmediate } from 'node:timers/promises'
import type { Revocations } from '../../domain/backend.ts'
import { MAX_COUNTED_OF_BACKEND } from '../../domain/limits.ts'
import type { Core } from '../context.ts'

/** What the records say of a backend beside its configuration. */
export interface BackendFacts extends Revocations {
  /** Credentials that have ended and that its upstream may still accept. `since`: epoch ms. */
  readonly unended: { readonly count: number; readonly since: number } | undefined
  /** Its credentials that have not ended, counted up to `MAX_COUNTED_OF_BACKEND`. */
  readonly live: number
}

/** Of each of these backends, in their order. */
export async function readFacts<B extends { readonly uid: string }>(
  core: Pick<Core, 'store' | 'unended' | 'revocations'>,
  backends: readonly B[],
): Promise<{ readonly backend: B; readonly facts: BackendFacts }[]> {
  const { credentials } = core.store
  const [unended, revocations] = await Promise.all([core.unended(), core.revocations.all()])
  const all: { backend: B; facts: BackendFacts }[] = []
  for (const backend of backends) {
    // Each count may take half a millisecond.
    if (all.length > 0) await setImmediate()
    const left = unended.get(backend.uid)
    const ended = left?.count ?? 0
    const open = await credentials.countOpenOfBackend(backend.uid, MAX_COUNTED_OF_BACKEND + ended)
    const live = Math.max(0, open - ended)
    all.push({ backend, facts: { unended: left, live, ...revocations.get(backend.uid) } })
  }
  return all
}
