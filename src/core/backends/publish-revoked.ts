import type { RevocationList, RevokedCredential } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/registry.ts'
import { nameKey } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { Core } from '../context.ts'

/** Anybody may ask, so a list is kept for this time, in ms, and a long one for a multiple of the time that it took. */
const FRESH_MS = 1_000
const FRESH_FACTOR = 20
/** Agents whose credentials are being ended in slices. */
const MAX_UNFINISHED = 1_000

type Parts = Pick<Core, 'store' | 'backends'>

interface Kept {
  readonly at: number
  freshMs: number
  readonly list: Promise<RevocationList>
}

const kept = new WeakMap<OpenBackend, Kept>()

/**
 * The list by which verifiers learn of the revoked credentials of a backend. The name is case-sensitive, as for its keys.
 * Throws `not_found` for a backend without one, `backend_unavailable` when it cannot be opened.
 */
export async function publishRevoked(core: Parts, name: string): Promise<RevocationList> {
  const { byName } = await core.backends.at(await core.store.generation())
  const backend = byName.get(nameKey(name))
  // Not for kinds with an upstream: anybody could make the server connect to it.
  if (backend === undefined || backend.name !== name || backend.kind.upstream) throw new Problem('not_found')
  const now = core.store.now()
  const last = kept.get(backend)
  if (last !== undefined && now >= last.at && now - last.at < last.freshMs) return last.list
  const begun = performance.now()
  const next: Kept = { at: now, freshMs: FRESH_MS, list: makeList(core, backend, now) }
  kept.set(backend, next)
  try {
    return await next.list
  } catch (error) {
    kept.delete(backend)
    throw error
  } finally {
    next.freshMs = Math.max(FRESH_MS, FRESH_FACTOR * (performance.now() - begun))
  }
}

async function makeList(core: Parts, backend: OpenBackend, now: number): Promise<RevocationList> {
  const instance = await backend.connect().catch((cause: unknown) => {
    throw new Problem('backend_unavailable', { cause, retryAfterSeconds: 5 })
  })
  if (instance.revocationList === undefined) throw new Problem('not_found')
  return instance.revocationList(await revokedOf(core, backend.uid, now))
}

async function revokedOf({ store }: Parts, uid: string, now: number): Promise<RevokedCredential[]> {
  const all = new Map<string, number>()
  // First, so that a credential whose row changes in between is in one of the two readings.
  for (const { agentId, endedAt } of await store.agents.unfinishedEnds(MAX_UNFINISHED))
    for (const id of await store.credentials.unfinishedOfBackend(uid, now, agentId)) all.set(id, endedAt)
  for (const { id, endedAt } of await store.credentials.revokedOfBackend(uid, now)) all.set(id, endedAt)
  return [...all]
    .map(([credentialId, endedAt]) => ({ credentialId, endedAt }))
    .sort((a, b) => (a.credentialId < b.credentialId ? -1 : 1))
}
