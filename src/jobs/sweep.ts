import type { OpenBackend } from '../backends/registry.ts'
import type { Core } from '../core/context.ts'
import { expireLocal, takeOver } from '../core/credentials/expire-credentials.ts'
import { settleUpstream } from '../core/credentials/settle-upstream.ts'
import type { CredentialRow } from '../store/schema/rows.ts'

/**
 * Rows of one commit for kinds without an upstream. SQLite has one writer, and a request waits for the slice before
 * it; PostgreSQL has others, and a larger slice spares round trips.
 */
const SLICE = { sqlite: 128, postgres: 250 }
/** Of one backend at once, for kinds with one. */
const AT_ONCE = 4
const BATCH = 32
/** Slices that somebody else's revocations may spoil before the next look. */
const TRIES = 8

/**
 * Ends what is due: expired credentials, revocations to be tried again, issues that were interrupted. Every
 * backend has its own turn and its own connections, so that a broken one holds up nobody else.
 */
export function createSweeper(core: Core) {
  const busy = new Map<string, Promise<void>>()

  async function sweepBackend(backend: OpenBackend, signal: AbortSignal): Promise<void> {
    if (backend.kind.upstream) await sweepUpstream(backend, signal)
    else await sweepLocal(backend, signal)
    if (backend.endedAt !== null) await forgetEnded(core, backend)
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
    while (!signal.aborted && backend.breaker.wait() <= 0) {
      const rows = await core.store.credentials.takeDue(backend.uid, core.store.now(), BATCH)
      await settleAll(core, backend, rows, signal)
      if (rows.length < BATCH) return
    }
  }

  return {
    /** One look at every backend; does not wait for those still at work from the last one. */
    async sweep(signal: AbortSignal): Promise<void> {
      const { byUid } = await core.backends.at(await core.store.generation())
      for (const backend of byUid.values()) {
        if (busy.has(backend.uid)) continue
        const turn = sweepBackend(backend, signal)
          .catch((error: unknown) =>
            core.log.error(
              { err: error, backend: backend.name },
              'the sweep of a backend failed; it goes on',
            ),
          )
          .finally(() => busy.delete(backend.uid))
        busy.set(backend.uid, turn)
      }
    },
    /** Resolves when nothing is at work. */
    async idle(): Promise<void> {
      await Promise.all(busy.values())
    },
  }
}

async function settleAll(
  core: Core,
  backend: OpenBackend,
  rows: readonly CredentialRow[],
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...rows]
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let row = waiting.shift(); row !== undefined && !signal.aborted; row = waiting.shift()) {
        const revoking = await takeOver(core, row)
        if (revoking !== undefined) await settleUpstream(core, backend, revoking)
      }
    }),
  )
}

/** A deleted backend whose last credential is gone: its keys are erased. */
async function forgetEnded(core: Core, backend: OpenBackend): Promise<void> {
  if ((await core.store.credentials.countOpenOfBackend(backend.uid, 1)) > 0) return
  await core.store.commit([core.store.backends.erase(backend.uid), { op: 'invalidate' }])
}
