import { setImmediate } from 'node:timers/promises'
import type { Backend, RevocationList, RevokedCredential } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { Problem } from '../../domain/problems.ts'
import type { Core } from '../context.ts'
import { findPublicBackend, openPublicBackend } from '../public-backend.ts'

/** Anybody may ask, so a list is kept for this time (ms); one that took long, for a multiple of the time it took. */
const FRESH_MS = 1_000
const FRESH_FACTOR = 20
/** Agents, and runs, whose credentials are being ended in slices. */
const MAX_UNFINISHED = 1_000
/** Rows that are taken over before other work has its turn. */
const SLICE = 4_000

type Parts = Pick<Core, 'store' | 'backends' | 'serialize'>

interface Kept {
  /** The newest list that is ready, as of `at`, and how long it is fresh, in ms. */
  list?: { readonly list: RevocationList; readonly at: number; readonly freshMs: number }
  /** The next one, while it is being made. */
  making: Promise<RevocationList> | undefined
}

const kept = new WeakMap<OpenBackend, Kept>()

/**
 * The list by which verifiers learn of the revoked credentials of a backend.
 * Throws `not_found` for a backend without one, `backend_unavailable` when it cannot be opened.
 */
export async function publishRevoked(core: Parts, name: string): Promise<RevocationList> {
  const backend = await findPublicBackend(core, name)
  const known: Kept = kept.get(backend) ?? { making: undefined }
  kept.set(backend, known)
  const { list: last } = known
  const now = core.store.now()
  const age = last === undefined || now < last.at ? Number.POSITIVE_INFINITY : now - last.at
  if (last !== undefined && age < last.freshMs) return last.list
  // All who ask meanwhile wait for the same list.
  known.making ??= makeNext(core, backend, known, now)
  if (last === undefined || last.freshMs === FRESH_MS || age > 2 * last.freshMs) return known.making
  // A list that takes long replaces the last one once it is ready. If it fails, requests fail once the last one is too old.
  known.making.catch(() => undefined)
  return last.list
}

async function makeNext(core: Parts, backend: OpenBackend, known: Kept, at: number): Promise<RevocationList> {
  const begun = performance.now()
  try {
    const list = await makeList(core, backend, at)
    const freshMs = Math.max(FRESH_MS, FRESH_FACTOR * (performance.now() - begun))
    known.list = { list, at, freshMs }
    return list
  } finally {
    known.making = undefined
  }
}

async function makeList(core: Parts, backend: OpenBackend, now: number): Promise<RevocationList> {
  const instance = await openPublicBackend(backend)
  const write = instance.revocationList?.bind(instance) as Backend['revocationList']
  if (write === undefined) throw new Problem('not_found')
  // One list at a time, of whatever backend, so that the memory for its rows is taken once.
  return core.serialize('revocation-list', async () => write(await revokedOf(core, backend.uid, now)))
}

async function revokedOf({ store }: Parts, uid: string, now: number): Promise<RevokedCredential[]> {
  const unfinished = new Map<string, number>()
  // First, so that a credential whose row changes in between is in one of the two readings.
  const [agents, runs] = await Promise.all([
    store.agents.unfinishedEnds(MAX_UNFINISHED),
    store.runs.unfinishedEnds(MAX_UNFINISHED),
  ])
  for (const { endedAt, ...owner } of [...agents, ...runs]) {
    for await (const rows of store.credentials.unfinishedOfBackend(uid, now, owner))
      for (const { id } of rows) unfinished.set(id, endedAt)
  }
  const all: RevokedCredential[] = []
  for await (const rows of store.credentials.revokedOfBackend(uid, now)) {
    for (const { id, endedAt } of rows) {
      unfinished.delete(id)
      all.push({ credentialId: id, endedAt })
      if (all.length % SLICE === 0) await setImmediate()
    }
  }
  for (const [credentialId, endedAt] of unfinished) all.push({ credentialId, endedAt })
  return all
}
