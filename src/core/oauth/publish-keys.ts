import { nameKey } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { PublicJwk } from '../../keys/jwt-keys.ts'
import type { Core } from '../context.ts'

/** The public keys that verify tokens of the issuer now, for relying parties. */
export async function publishIssuerKeys(core: Pick<Core, 'store' | 'issuerKeys'>): Promise<PublicJwk[]> {
  const keySet = await core.issuerKeys.at(await core.store.generation())
  const now = core.store.now()
  return keySet.verifying
    .filter((key) => key.retiresAt === null || key.retiresAt > now)
    .map((key) => key.publicJwk)
}

/**
 * The public keys of a backend that is an issuer of its own. The name is case-sensitive, like the URL of an issuer.
 * Throws `not_found` for an unknown issuer, `backend_unavailable` when it cannot be opened.
 */
export async function publishBackendKeys(
  core: Pick<Core, 'store' | 'backends'>,
  name: string,
): Promise<readonly PublicJwk[]> {
  const { byName } = await core.backends.at(await core.store.generation())
  const found = byName.get(nameKey(name))
  // Not for kinds with an upstream: anybody could make the server connect to it.
  if (found === undefined || found.name !== name || found.kind.upstream) throw new Problem('not_found')
  const keys = await connect(found)
  if (keys === undefined) throw new Problem('not_found')
  return keys
}

async function connect(backend: {
  connect(): Promise<{ publicKeys?(): readonly PublicJwk[] }>
}): Promise<readonly PublicJwk[] | undefined> {
  try {
    return (await backend.connect()).publicKeys?.()
  } catch (cause) {
    throw new Problem('backend_unavailable', { cause, retryAfterSeconds: 5 })
  }
}
