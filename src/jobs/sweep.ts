import type { OpenBackend } from '../backends/registry.ts'
import { claimedUntil } from '../core/backends/call-upstream.ts'
import { continueDeletion } from '../core/backends/delete-backend.ts'
import { retireBackend } from '../core/backends/keep-up.ts'
import type { Core } from '../core/context.ts'
import { expireLocal, takeOver } from '../core/credentials/expire-credentials.ts'
import { settleUpstream } from '../core/credentials/settle-upstream.ts'
import type { Credential } from '../domain/credential.ts'

type Parts = Pick<Core, 'store' | 'backends' | 'sealer' | 'settings' | 'ids' | 'meter' | 'log' | 'random'>

/**
 * Rows of one commit for kinds without an upstream. SQLite has one writer, so requests wait for each slice; PostgreSQL
 * has several, and a larger slice saves round trips.
 */
const SLICE = { sqlite: 128, postgres: 250 }
/** Credentials of one backend that are settled at once, for kinds with an upstream. */
const AT_ONCE = 4
const BATCH = 32
/** Slices that concurrent revocations may spoil before the loop pauses. */
const TRIES = 8

/**
 * Ends what is due: expired credentials, revocations to retry, interrupted issues, and backends that are being deleted. Each backend is swept on its own, with
 * its own connections, so that a broken one delays no other.
 */
export function createSweeper(core: Parts) {
  const busy = new Map<string, Promise<void>>()

  async function sweepBackend(backend: OpenBackend, signal: AbortSignal): Promise<void> {
    if (backend.ending !== null) await continueDeletion(core, { ...backend, ending: backend.ending }, signal)
    if (backend.kind.upstream) await sweepUpstream(backend, signal)
    else await sweepLocal(backend, signal)
    if (backend.endedAt !== null) await eraseEnded(core, backend)
  }

  async function sweepLocal(backend: OpenBackend, signal: AbortSignal): Promise<void> {
    const limit = SLICE[core.store.dialect]
    for (let refused = 0; !signal.aborted && refused < TRIES; ) {
      const ended = await expireLocal(core, backend, limit)
      if (ended === undefined) refused += 1
      else if (ended < limit) return
    }
  }

  async function sweepUpstream(backend: OpenBackend, signal: AbortSignal): Promise<void> {
    while (!signal.aborted && backend.breakers.revoking.wait() <= 0) {
      const now = core.store.now()
      const due = await core.store.credentials.takeDue(backend.uid, now, claimedUntil(core, now), BATCH)
      await settleAll(core, backend, due, signal)
      if (due.length < BATCH) return
    }
  }

  return {
    /** Starts a sweep of every backend, except those whose last sweep is still running. Does not wait for them. */
    async sweep(signal: AbortSignal): Promise<void> {
      const { byUid } = await core.backends.at(await core.store.generation())
      for (const backend of byUid.values()) {
        if (busy.has(backend.uid)) continue
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

async function settleAll(
  core: Parts,
  backend: OpenBackend,
  credentials: readonly Credential[],
  signal: AbortSignal,
): Promise<void> {
  const waiting = credentials.values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const credential of waiting) {
        if (signal.aborted) return
        const revoking = await takeOver(core, backend, credential)
        if (revoking !== undefined) await settleUpstream(core, backend, revoking)
      }
    }),
  )
}

/** Erases the configuration of a deleted backend once its last credential is settled. */
async function eraseEnded(core: Parts, backend: OpenBackend): Promise<void> {
  if ((await core.store.credentials.countOpenOfBackend(backend.uid, 1)) > 0) return
  if (backend.breakers.revoking.wait() > 0 || !(await retireBackend(core, backend))) return
  await core.store.commit(core.store.backends.erase(backend.uid), { urgent: true })
}
