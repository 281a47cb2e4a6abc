import type { Backend } from '../backends/kind.ts'
import type { OpenBackend } from '../backends/open-backends.ts'
import { nameKey } from '../domain/agent.ts'
import { Problem } from '../domain/problems.ts'
import type { Core } from './context.ts'

/**
 * A backend that answers anybody: with its keys, its revoked credentials or tokens. The name is case-sensitive, like the URL of
 * an issuer. Throws `not_found`, also for kinds with an upstream: anybody could make the server connect to it.
 */
export async function findPublicBackend(
  core: Pick<Core, 'store' | 'backends'>,
  name: string,
): Promise<OpenBackend> {
  const { byName } = await core.backends.at(await core.store.generation())
  const found = byName.get(nameKey(name))
  if (found === undefined || found.name !== name || found.kind.upstream) throw new Problem('not_found')
  return found
}

/** Throws `backend_unavailable` when it cannot be opened. */
export async function openPublicBackend(backend: OpenBackend): Promise<Backend> {
  return backend.connect().catch((cause: unknown) => {
    throw new Problem('backend_unavailable', { cause, retryAfterSeconds: 5 })
  })
}
