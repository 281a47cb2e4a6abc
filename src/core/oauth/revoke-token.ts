import { JWT_TOLERANCE_MS } from '../../domain/limits.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { Problem } from '../../domain/problems.ts'
import { isBearerForm } from '../../keys/bearer.ts'
import type { VerifiedToken } from '../../keys/jwt-keys.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { revokeCredential } from '../credentials/revoke-credential.ts'
import { type AuthenticatedClient, useProof } from './authenticate-client.ts'
import { identifyToken } from './identify-token.ts'
import { requireRate } from './mint-token.ts'

/**
 * RFC 7009. An unknown token, one that has ended and one of another client are answered as if they had been revoked
 * (§2.2), so that the caller learns nothing. A permanent bearer lives as long as its agent and cannot be revoked: any
 * text of its form is an `unsupported_token_type` (§2.2.1). Throws that, and `rate_limited`.
 */
export async function revokeToken(core: Core, who: AuthenticatedClient, text: string): Promise<void> {
  await useProof(core, who, { urgent: true })
  if (isBearerForm(text))
    throw new OAuthProblem(
      'unsupported_token_type',
      'A permanent token ends with its agent; delete the agent instead.',
    )
  const found = await identifyToken(core, text, who.generation)
  if (found?.kind === 'access' && found.token.clientId === who.client.agent.clientId)
    await revokeAccessToken(core, who, found.token)
  if (found?.kind === 'credential') await revokeOwnCredential(core, who, found.credential.id)
}

async function revokeAccessToken(
  core: Core,
  who: AuthenticatedClient,
  { jti, expiresAt }: VerifiedToken,
): Promise<void> {
  requireRate(core, who, 'revoke')
  const change: Step[] = [
    ...core.store.agents.touch(who.client.agent.id),
    // Remembered for as long as the clock tolerance would accept the token.
    core.store.tokens.revoke(jti, expiresAt + JWT_TOLERANCE_MS),
    audit(core, who.actor, { action: 'token.revoked', details: { jti } }),
  ]
  // Refused only when the token is already revoked or its agent has ended, which is the requested result.
  await commit(core, who.actor, change, { urgent: true })
}

async function revokeOwnCredential(core: Core, who: AuthenticatedClient, id: string): Promise<void> {
  try {
    await revokeCredential(core, who.actor, id)
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'credential_not_found')) throw error
  }
}
