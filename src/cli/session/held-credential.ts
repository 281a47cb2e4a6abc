import type { IssuedCredential } from '../../client/wire.ts'
import { CliError } from '../frame/failure.ts'

/** With its secret, as it came. */
export type HeldCredential = IssuedCredential & { readonly token: string }

/** The server gives the secret once; a reply without it is of no use to us. */
export function requireToken(issued: IssuedCredential): HeldCredential {
  const { token } = issued
  if (token !== undefined) return { ...issued, token }
  throw new CliError('no_secret', 'The server gave no secret with the credential.', { hint: 'Try again.' })
}
