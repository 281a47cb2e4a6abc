import type { IssuedCredential } from '../../client/wire.ts'
import { CliError } from '../frame/failure.ts'

/** A credential with its secret. */
export type HeldCredential = IssuedCredential & { readonly token: string }

/** Throws `CliError` for a credential without its secret, which the server gives only once. */
export function requireToken(issued: IssuedCredential): HeldCredential {
  const { token } = issued
  if (token !== undefined) return { ...issued, token }
  throw new CliError('no_secret', 'The server sent the credential without its secret.', {
    hint: 'Try again.',
  })
}
