import { CliError } from '../frame/failure.ts'
import type { HeldCredential } from '../session/held-credential.ts'

/** A field of a credential as text; undefined if the backend does not give it. */
export function partOf({ fields }: HeldCredential, name: string): string | undefined {
  if (fields === undefined || !Object.hasOwn(fields, name)) return undefined
  const value = fields[name]
  return value === undefined || value === '' ? undefined : String(value)
}

/** Throws `CliError` that lists the fields there are, never a value. */
export function needPart(credential: HeldCredential, name: string, tool: string): string {
  const value = partOf(credential, name)
  if (value !== undefined) return value
  throw notFor(credential, tool, `It gives no ${name}`)
}

/**
 * The single secret of a credential, on one line: the field `token` if there are fields, otherwise the secret itself.
 * Throws `CliError` if there is none or the protocol cannot carry it.
 */
export function singleSecret(credential: HeldCredential, tool: string): string {
  const secret = partOf(credential, 'token') ?? (isInParts(credential) ? undefined : credential.token)
  if (secret === undefined) throw notFor(credential, tool, 'It gives no single secret')
  return needOneLine(credential, secret, tool)
}

/** Throws `CliError` for a secret that a header or a line cannot hold. */
export function needOneLine(credential: HeldCredential, secret: string, tool: string): string {
  if (secret.length > 0 && /^[\x20-\x7e]+$/.test(secret)) return secret
  throw notFor(credential, tool, 'Its secret is empty or has several lines')
}

/** If a credential has only fields, the server puts them into the token as JSON. */
function isInParts({ fields, token }: HeldCredential): boolean {
  return fields !== undefined && token.startsWith('{')
}

/** Checks the form of a JWT; its reader verifies it. */
export function needJwt(credential: HeldCredential, tool: string): string {
  const token = singleSecret(credential, tool)
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return token
  throw notFor(credential, tool, 'Its secret is not a JWT')
}

function notFor({ backend, fields }: HeldCredential, tool: string, why: string): CliError {
  const names = fields === undefined ? 'one secret' : Object.keys(fields).join(', ')
  return new CliError(
    'wrong_backend',
    `Backend ${backend} does not suit ${tool}. ${why}; it gives: ${names}.`,
    {
      hint: 'Choose another with --backend; list them with `mayfly backends`.',
    },
  )
}
