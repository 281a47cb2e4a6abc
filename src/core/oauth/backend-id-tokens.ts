import type { Host, IdTokenClaims } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { Core } from '../context.ts'

/** Half of the longest credential of Anthropic, which makes a token twice as long as the rest of an id token. */
const LONGEST_MS = 43_200_000

/**
 * Tokens by which a backend identifies Mayfly to an upstream that trusts it as an OpenID provider (OpenID Connect Core 1.0, §2).
 * Throws `BackendError` for an audience of the server's own, so that no such token is ever one for Mayfly itself.
 */
export function createIdTokens(
  core: Pick<Core, 'store' | 'ids' | 'issuerKeys' | 'settings'>,
): Host['idToken'] {
  const { settings } = core
  const ours = new Set([...settings.issuerNames, ...settings.audiences])
  return async ({ audience, subject, expiresAt, claims }: IdTokenClaims) => {
    if (ours.has(audience)) {
      throw new BackendError(
        'misconfigured',
        'The audience is one of Mayfly itself; name that of the upstream.',
      )
    }
    const now = core.store.now()
    const iat = Math.floor(now / 1000)
    const exp = Math.floor(Math.min(expiresAt, now + LONGEST_MS) / 1000)
    const { signing } = await core.issuerKeys.at(await core.store.generation())
    return signing.sign(
      { typ: 'JWT' },
      {
        ...claims,
        iss: settings.issuer,
        aud: audience,
        sub: subject,
        iat,
        nbf: iat,
        exp,
        jti: core.ids.body(),
      },
    )
  }
}
