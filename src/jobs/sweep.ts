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
/**
 * Credentials of one backend that are settled at once, for kinds with an upstream. Few spare one that shares its machine, or
 * serves others as well; of one that is slow more are under way, because waiting costs it nothing.
 */
const AT_ONCE = { least: 4, most: 16 }
/** With so much time for each, 10,000 that are due in the same second end in half a minute, and issuing keeps its pace. */
const EACH_MS = 2
const BATCH = 64
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
    let atOnce = AT_ONCE.least
    while (!signal.aborted && backend.breakers.revoking.wait() <= 0) {
      const now = core.store.now()
      const due = await core.store.credentials.takeDue(backend.uid, now, claimedUntil(core, now), BATCH)
      const tookMs = await settleAll(core, backend, due, { atOnce, signal })
      if (due.length < BATCH) return
      atOnce = settledAtOnce(tookMs / due.length)
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

/** How many to settle at once where one takes so long. */
export function settledAtOnce(tookMs: number): number {
  return Math.min(AT_ONCE.most, Math.max(AT_ONCE.least, Math.ceil(tookMs / EACH_MS)))
}

/** Returns how long they took, added up. */
async function settleAll(
  core: Parts,
  backend: OpenBackend,
  credentials: readonly Credential[],
  { atOnce, signal }: { readonly atOnce: number; readonly signal: AbortSignal },
): Promise<number> {
  const waiting = credentials.values()
  let tookMs = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const credential of waiting) {
        if (signal.aborted) return
        const began = performance.now()
        const revoking = await takeOver(core, backend, credential)
        if (revoking !== undefined) await settleUpstream(core, backend, revoking)
        tookMs += performance.now() - began
      }
    }),
  )
  return tookMs
}

/** Erases the configuration of a deleted backend once its last credential is settled. */
async function eraseEnded(core: Parts, backend: OpenBackend): Promise<void> {
  if ((await core.store.credentials.countOpenOfBackend(backend.uid, 1)) > 0) return
  if (backend.breakers.revoking.wait() > 0 || !(await retireBackend(core, backend))) return
  await core.store.commit(core.store.backends.erase(backend.uid), { urgent: true })
}
