import type { BackendState } from '../../backends/kind.ts'
import { backendStateKey } from '../../domain/backend.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { Core } from '../context.ts'
import { describe } from './call-upstream.ts'

/** What a kind keeps of one backend: a sealed value in `meta`, which is resealed like every other. */
export function createBackendState(
  { store, sealer }: Pick<Core, 'store' | 'sealer'>,
  uid: string,
): BackendState {
  const key = backendStateKey(uid)
  const open = (sealed: string | undefined) =>
    sealed === undefined ? undefined : sealer.open('meta', key, 'value', sealed)
  return {
    read: () => orUnavailable(async () => open(await store.meta.get(key))),
    replace: (before, after) =>
      orUnavailable(async () => {
        const stored = await store.meta.get(key)
        if (open(stored) !== before) return false
        const sealed = sealer.seal('meta', key, 'value', after)
        const step =
          stored === undefined ? store.meta.add(key, sealed) : store.meta.replace(key, stored, sealed)
        // Urgent: an upstream may already have forgotten what this replaces.
        return (await store.commit([step], { urgent: true })).done
      }),
  }
}

async function orUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const options = { detail: describe(error), cause: error }
    throw new BackendError(
      'unavailable',
      'Mayfly could not read or write what it keeps of this backend.',
      options,
    )
  }
}
