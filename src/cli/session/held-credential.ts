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

/** When it ends here or upstream, whichever is first; epoch ms. */
export function endOf({ expires_at, upstream_expires_at }: IssuedCredential): number {
  const end = Date.parse(expires_at)
  return upstream_expires_at === undefined ? end : Math.min(end, Date.parse(upstream_expires_at))
}

/** Whether it lives longer than this, or than a quarter of its life: demanding more would mean a new one each time. */
export function isFresh(credential: IssuedCredential, now: number, minRemainingMs: number): boolean {
  const end = endOf(credential)
  const life = end - Date.parse(credential.created_at)
  return end - now > Math.min(minRemainingMs, life / 4)
}
