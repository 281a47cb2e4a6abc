import type { OpenBackend } from '../backends/open-backends.ts'
import { describe } from '../core/backends/call-upstream.ts'
import { reconcileSettled } from '../core/backends/reconcile-settled.ts'
import type { Core } from '../core/context.ts'
import { backendReconcileKey } from '../domain/backend.ts'
import { DAY_MS, HOUR_MS } from '../domain/limits.ts'
import { Problem } from '../domain/problems.ts'

type Parts = Pick<Core, 'store' | 'backends' | 'settings' | 'ids' | 'log' | 'health'>

/**
 * Once a day, at a different time for each backend, ends accounts that settled credentials have left upstream. The store
 * keeps the time of the next run. The node that advances it does the run, so no two nodes do. A run that fails, or whose
 * node dies, is repeated after an hour.
 */
export function createReconcile(core: Parts): (signal: AbortSignal) => Promise<void> {
  const { meta, now, commit } = core.store
  /** As last read, by uid: a backend costs the store a query a day, not one a minute. */
  const dueAt = new Map<string, number>()

  async function move(uid: string, from: string | undefined, to: number): Promise<boolean> {
    const key = backendReconcileKey(uid)
    const step = from === undefined ? meta.add(key, String(to)) : meta.replace(key, from, String(to))
    if (!(await commit([step])).done) return false
    dueAt.set(uid, to)
    return true
  }

  async function claim({ uid }: OpenBackend): Promise<string | undefined> {
    const at = now()
    const noted = await meta.get(backendReconcileKey(uid))
    if (noted === undefined) {
      await move(uid, undefined, at + Math.floor(Math.random() * DAY_MS))
      return undefined
    }
    dueAt.set(uid, Number(noted))
    if (Number(noted) > at) return undefined
    return (await move(uid, noted, at + HOUR_MS)) ? String(at + HOUR_MS) : undefined
  }

  return async (signal) => {
    const { byUid } = await core.backends.at(await core.store.generation())
    for (const uid of dueAt.keys()) if (!byUid.has(uid)) dueAt.delete(uid)
    for (const backend of byUid.values()) {
      if (signal.aborted) return
      if (!mayRun(backend) || (dueAt.get(backend.uid) ?? 0) > now()) continue
      const claimed = await claim(backend)
      if (claimed === undefined || !(await run(core, backend, signal))) continue
      await move(backend.uid, claimed, now() + DAY_MS - Math.floor(Math.random() * HOUR_MS))
    }
  }
}

const mayRun = ({ kind, ending, endedAt, breakers }: OpenBackend) =>
  kind.revocation === 'exact' && ending === null && endedAt === null && breakers.revoking.wait() <= 0

/** Returns whether everything was seen, or nothing can be seen. */
async function run(core: Parts, backend: OpenBackend, signal: AbortSignal): Promise<boolean> {
  try {
    return await reconcileSettled(core, backend, signal)
  } catch (error) {
    if (error instanceof Problem && error.code === 'invalid_request') return true
    core.log.warn(
      { backend: backend.name, detail: describe(error) },
      'what is left upstream of ended credentials could not be looked for; it will be tried again in an hour',
    )
    return false
  }
}
