import { JWT_TOLERANCE_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import { revokeCredential } from '../credentials/revoke-credential.ts'
import { type AuthenticatedClient, callerOf, type OAuthCore, useProof } from './authenticate-client.ts'
import { identifyToken } from './identify-token.ts'
import { OAuthRefusal } from './oauth-refusal.ts'

/**
 * RFC 7009. What is unknown, ended already or another client's is answered as if it had been revoked (§2.2): there
 * is nothing that the caller could do about it, nor learn from it. A permanent bearer lives as long as its agent;
 * to say that it was revoked would be untrue, so that its form alone is an `unsupported_token_type` (§2.2.1).
 */
export async function revokeToken(
  core: OAuthCore,
  who: AuthenticatedClient,
  text: string,
  origin: Origin,
): Promise<void> {
  await useProof(core, who, origin)
  if (core.keys.isBearerForm(text))
    throw new OAuthRefusal(
      'unsupported_token_type',
      'A permanent token ends with its agent: delete the agent instead.',
    )
  const found = await identifyToken(core, text, who.client.generation)
  if (found?.kind === 'access' && found.token.clientId === who.client.clientId)
    await revokeAccessToken(core, who, found.token.jti, found.token.expiresAt, origin)
  if (found?.kind === 'credential') await revokeOwnCredential(core, who, found.row.id, origin)
}

async function revokeAccessToken(
  core: OAuthCore,
  who: AuthenticatedClient,
  jti: string,
  expiresAt: number,
  origin: Origin,
): Promise<void> {
  const change: Step[] = [
    {
      op: 'insert',
      table: 'revoked_tokens',
      // Remembered for as long as the clock tolerance would let it pass.
      row: { jti, expires_at: expiresAt + JWT_TOLERANCE_MS },
    },
    { op: 'invalidate' },
    audit(core, callerOf(who), origin, { action: 'token.revoked', details: { jti } }),
  ]
  // Refused only when it has been revoked meanwhile: that is what was asked for.
  await commit(core, change, { urgent: true })
}

async function revokeOwnCredential(
  core: OAuthCore,
  who: AuthenticatedClient,
  id: string,
  origin: Origin,
): Promise<void> {
  try {
    await revokeCredential(core, callerOf(who), id, origin)
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'credential_not_found')) throw error
  }
}
