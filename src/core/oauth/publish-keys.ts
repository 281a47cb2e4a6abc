import { Problem } from '../../domain/problems.ts'
import type { PublicJwk } from '../../keys/jwt-keys.ts'
import type { Core } from '../context.ts'
import { findPublicBackend, openPublicBackend } from '../public-backend.ts'

type Parts = Pick<Core, 'store' | 'issuerKeys'>

/** The keys that verify tokens of the issuer now, newest first: that is the one that signs. */
export async function verifyingKeys(core: Parts) {
  const keySet = await core.issuerKeys.at(await core.store.generation())
  const now = core.store.now()
  return keySet.verifying.filter((key) => key.retiresAt === null || key.retiresAt > now)
}

/** The public keys that verify tokens of the issuer now, for relying parties. */
export async function publishIssuerKeys(core: Parts): Promise<PublicJwk[]> {
  return (await verifyingKeys(core)).map((key) => key.publicJwk)
}

/**
 * The public keys of a backend that is an issuer of its own. Throws `not_found` for an unknown issuer, `backend_unavailable` when it cannot be opened.
 */
export async function publishBackendKeys(
  core: Pick<Core, 'store' | 'backends'>,
  name: string,
): Promise<readonly PublicJwk[]> {
  const instance = await openPublicBackend(await findPublicBackend(core, name))
  const keys = instance.publicKeys?.()
  if (keys === undefined) throw new Problem('not_found')
  return keys
}
