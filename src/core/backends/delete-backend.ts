import type { BackendEnding, StoredBackend } from '../../domain/backend.ts'
import { Problem } from '../../domain/problems.ts'
import { audit, traceOf } from '../audit/entry.ts'
import { type Actor, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import { requireConfirmed } from '../confirm.ts'
import type { Core } from '../context.ts'

/** How many credentials end in about a second. A request to end more answers 202. */
const ENDED_AT_ONCE = 10_000
const NEVER = new AbortController().signal

/** A backend that is being deleted, because it has too many credentials to end in one change (ADR 0024). */
export interface Deletion {
  readonly name: string
  /** Epoch ms. */
  readonly since: number
  /** Credentials that have not ended yet. */
  readonly remaining: number
}

/**
 * Throws `conflict` while credentials of the backend live. With `force` they are ended in the same commit, and the backend
 * stays open internally until the last one is gone upstream. If they are more than one slice, the decision is committed
 * first, so that nothing is issued from then on. A very large number is left to the sweeper: returns how far it is. Throws
 * `backend_not_found` and `confirmation_required`.
 */
export async function deleteBackend(
  core: Pick<Core, 'store' | 'ids' | 'settings' | 'rates'>,
  actor: Actor,
  name: string,
  force: boolean,
): Promise<Deletion | undefined> {
  const { backends, credentials, endSlice } = core.store
  const backend = await backends.findByName(name)
  if (backend === undefined) throw new Problem('backend_not_found')
  await requireConfirmed(core, actor)
  if (backend.ending !== null) return readDeletion(core, { ...backend, ending: backend.ending })
  const active = force
    ? (await credentials.activeOfBackend(backend.uid, core.store.now(), ENDED_AT_ONCE)).length
    : 0
  if (active >= endSlice) return deleteInSlices(core, actor, backend, active)
  const now = core.store.now()
  const outcome = await commit(
    core,
    actor,
    [
      ...backends.end(backend.uid, now),
      ...(force
        ? credentials.endAll({ backendUid: backend.uid }, 'backend_deleted', now, traceOf(actor))
        : [backends.requireIdle(backend.uid)]),
      entryOf(core, actor, backend, { force }),
    ],
    { urgent: true },
  )
  if (outcome.done) return undefined
  if (outcome.step === 0) throw new Problem('backend_not_found')
  throw new Problem('conflict', {
    message: 'This backend has living credentials: revoke them, or add ?force=true.',
  })
}

async function deleteInSlices(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor,
  backend: StoredBackend,
  active: number,
): Promise<Deletion | undefined> {
  const ending = { since: core.store.now(), by: traceOf(actor) }
  const deletion = await readDeletion(core, { ...backend, ending })
  const { remaining } = deletion
  const change = [
    ...core.store.backends.beginEnding(backend.uid, ending),
    entryOf(core, actor, backend, { force: true, remaining }),
  ]
  const outcome = await commit(core, actor, change, { urgent: true })
  if (!outcome.done)
    throw new Problem('conflict', { message: 'Another request deletes this backend at the moment.' })
  if (active >= ENDED_AT_ONCE) return deletion
  await continueDeletion(core, { ...backend, ending }, NEVER)
  return undefined
}

function entryOf(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor,
  { name, type }: StoredBackend,
  details: Record<string, unknown>,
) {
  return audit(core, actor, {
    action: 'backend.deleted',
    backend: name,
    details: { type, ...details },
  })
}

type Ending = Pick<StoredBackend, 'uid' | 'name'> & { readonly ending: BackendEnding }

export async function readDeletion(
  core: Pick<Core, 'store'>,
  { uid, name, ending: { since } }: Ending,
): Promise<Deletion> {
  const { open, unsettled } = await core.store.credentials.backlog(uid)
  return { name, since, remaining: open - unsettled }
}

/**
 * Ends the credentials of a backend that is being deleted, in slices, and then the backend with the rest: in one change they
 * would exceed the statement time-out and hold up every other writer. May be interrupted, and run by several nodes.
 */
export async function continueDeletion(
  core: Pick<Core, 'store'>,
  { uid, ending: { by } }: Ending,
  signal: AbortSignal,
): Promise<void> {
  const { backends, credentials, endSlice: limit } = core.store
  while (!signal.aborted) {
    const now = core.store.now()
    const ids = await credentials.activeOfBackend(uid, now, limit)
    if (ids.length < limit) {
      const rest = credentials.endAll({ backendUid: uid }, 'backend_deleted', now, by)
      await commit(core, SYSTEM, [...backends.end(uid, now), ...rest], { urgent: true })
      return
    }
    await commit(core, SYSTEM, credentials.endSome(ids, 'backend_deleted', now, by), {
      urgent: true,
      bulk: true,
    })
  }
}
