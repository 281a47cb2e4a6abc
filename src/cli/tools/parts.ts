import { CliError } from '../frame/failure.ts'
import type { HeldCredential } from '../session/held-credential.ts'

/** A part of a credential as text; undefined when the backend does not give it. */
export function partOf({ fields }: HeldCredential, name: string): string | undefined {
  if (fields === undefined || !Object.hasOwn(fields, name)) return undefined
  const value = fields[name]
  return value === undefined || value === '' ? undefined : String(value)
}

/** Throws `CliError` that names what there is instead; never a value. */
export function needPart(credential: HeldCredential, name: string, tool: string): string {
  const value = partOf(credential, name)
  if (value !== undefined) return value
  throw notFor(credential, tool, `It gives no ${name}`)
}

/**
 * The one secret of a credential, on one line: the part `token` where there are parts, else the secret itself.
 * Throws `CliError` where there is none, or one that the protocol cannot carry.
 */
export function singleSecret(credential: HeldCredential, tool: string): string {
  const secret = partOf(credential, 'token') ?? (isInParts(credential) ? undefined : credential.token)
  if (secret === undefined) throw notFor(credential, tool, 'It gives no single secret')
  return needOneLine(credential, secret, tool)
}

/** What stands between quotes in a header or alone on a line. */
export function needOneLine(credential: HeldCredential, secret: string, tool: string): string {
  if (secret.length > 0 && /^[\x20-\x7e]+$/.test(secret)) return secret
  throw notFor(credential, tool, 'Its secret has several lines or none')
}

/** Without a secret of its own, the server writes the parts there as JSON. */
function isInParts({ fields, token }: HeldCredential): boolean {
  return fields !== undefined && token.startsWith('{')
}

/** A JWT by its form; whether it is a good one is for its reader to say. */
export function needJwt(credential: HeldCredential, tool: string): string {
  const token = singleSecret(credential, tool)
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return token
  throw notFor(credential, tool, 'Its secret is no JWT')
}

function notFor({ backend, fields }: HeldCredential, tool: string, why: string): CliError {
  const names = fields === undefined ? 'one secret' : Object.keys(fields).join(', ')
  return new CliError('wrong_backend', `Backend ${backend} is not for ${tool}. ${why}; it gives: ${names}.`, {
    hint: 'Name another with --backend; see `mayfly backends`.',
  })
}
