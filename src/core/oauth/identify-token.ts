import type { Credential } from '../../domain/credential.ts'
import { isId } from '../../domain/ids.ts'
import type { VerifiedToken } from '../../keys/jwt-keys.ts'
import { verifyAccessToken } from '../../keys/jwt-keys.ts'
import type { Core } from '../context.ts'
import { unverifiedPart } from './unverified-jwt.ts'

type Claims = Readonly<Record<string, unknown>>

/** A text that has been proven to be one of our tokens, though the token may have ended. */
export type IdentifiedToken =
  | { readonly kind: 'access'; readonly token: VerifiedToken }
  | { readonly kind: 'credential'; readonly credential: Credential; readonly claims: Claims }

type Parts = Pick<Core, 'store' | 'hasher' | 'issuerKeys' | 'settings'>

/** An access token for any audience that verifies and is not revoked, or the token of a `jwt` backend as it was issued. */
export async function identifyToken(
  core: Parts,
  text: string,
  generation: number,
): Promise<IdentifiedToken | undefined> {
  const claims = unverifiedPart(text, 1)
  const jti = claims?.['jti']
  if (claims === undefined || typeof jti !== 'string') return undefined
  if (!isId('credential', jti)) return identifyAccessToken(core, text, generation)
  const credential = await core.store.credentials.find(jti)
  // The hash is over the whole text, so that what the claims say is what was signed.
  if (credential?.secretHash == null || !core.hasher.matches(text, credential.secretHash)) return undefined
  return { kind: 'credential', credential, claims }
}

async function identifyAccessToken(
  core: Parts,
  text: string,
  generation: number,
): Promise<IdentifiedToken | undefined> {
  const { issuer } = core.settings
  const keySet = await core.issuerKeys.at(generation)
  const now = core.store.now()
  const usable = keySet.verifying.filter((key) => key.retiresAt === null || key.retiresAt > now)
  const token = await verifyAccessToken(text, usable, { issuer, now })
  if (token === undefined || (await core.store.tokens.isRevoked(token.jti))) return undefined
  return { kind: 'access', token }
}
