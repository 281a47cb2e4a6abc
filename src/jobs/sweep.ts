import type { OpenBackend } from '../backends/open-backends.ts'
import { continueDeletion } from '../core/backends/delete-backend.ts'
import { retireBackend } from '../core/backends/keep-up.ts'
import type { Core } from '../core/context.ts'
import { expireLocal } from '../core/credentials/expire-credentials.ts'
import { sweepUpstream } from './sweep-upstream.ts'

/** Slices that concurrent revocations may spoil before the loop pauses. */
const TRIES = 8

/**
 * Ends what is due: expired credentials, revocations to retry, interrupted issues, and backends that are being deleted. Each backend is swept on its own, with
 * its own connections, so that a broken one delays no other.
 */
export function createSweeper(core: Core) {
  const busy = new Map<string, Promise<void>>()

  async function sweepBackend(backend: OpenBackend, signal: AbortSignal): Promise<void> {
    if (backend.ending !== null) await continueDeletion(core, { ...backend, ending: backend.ending }, signal)
    if (backend.kind.upstream) await sweepUpstream(core, backend, signal)
    else await sweepLocal(backend, signal)
    if (backend.endedAt !== null) await eraseEnded(core, backend)
  }

  async function sweepLocal(backend: OpenBackend, signal: AbortSignal): Promise<void> {
    const limit = core.store.expireSlice
    for (let refused = 0; !signal.aborted && refused < TRIES; ) {
      const ended = await expireLocal(core, backend, limit)
      if (ended === undefined) refused += 1
      else if (ended < limit) return
    }
  }

  return {
    /** Starts a sweep of every backend that needs one and is not being swept. Does not wait for them. */
    async sweep(signal: AbortSignal): Promise<void> {
      const { byUid } = await core.backends.at(await core.store.generation())
      const idle = [...byUid.values()].filter(({ uid }) => !busy.has(uid))
      for (const backend of await needSweep(core, idle)) {
        const sweep = sweepBackend(backend, signal)
          .catch((error: unknown) =>
            core.log.error(
              { err: error, backend: backend.name },
              'the sweep of a backend failed and will be repeated',
            ),
          )
          .finally(() => busy.delete(backend.uid))
        busy.set(backend.uid, sweep)
      }
    },
    /** Resolves when no sweep is running. */
    async idle(): Promise<void> {
      await Promise.all(busy.values())
    },
  }
}

/** Those with something due, by one query for all, and those that are being deleted. */
async function needSweep(core: Core, backends: readonly OpenBackend[]): Promise<OpenBackend[]> {
  if (backends.length === 0) return []
  const uids = backends.map(({ uid }) => uid)
  const due = await core.store.credentials.dueBackends(uids, core.store.now())
  return backends.filter(({ uid, ending, endedAt }) => due.has(uid) || ending !== null || endedAt !== null)
}

/** Erases the configuration of a deleted backend once its last credential is settled. */
async function eraseEnded(core: Core, backend: OpenBackend): Promise<void> {
  if ((await core.store.credentials.countOpenOfBackend(backend.uid, 1)) > 0) return
  if (backend.breakers.revoking.wait() > 0 || !(await retireBackend(core, backend))) return
  await core.store.commit(core.store.backends.erase(backend.uid), { urgent: true })
}
