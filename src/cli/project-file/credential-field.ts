import { CliError } from '../frame/failure.ts'
import type { HeldCredential } from '../session/held-credential.ts'

/** Every credential has these besides its own fields. */
const PLAIN_FIELDS = ['token', 'id', 'expires_at', 'created_at', 'ttl'] as const

/** `secret`: the name that kinds use for the one value. */
const SYNONYMS: Readonly<Record<string, string>> = { secret: 'token' }

/** A field of a credential as text. Throws `CliError` for one it lacks. */
export function fieldOf(credential: HeldCredential, name: string): string {
  const found = findField(credential, name)
  if (found !== undefined) return found
  const shown = JSON.stringify(name.slice(0, 40))
  throw new CliError('no_such_field', `A credential of ${credential.backend} has no field ${shown}.`, {
    exit: 2,
    hint: `It has: ${[...Object.keys(credential.fields ?? {}), ...PLAIN_FIELDS].join(', ')}.`,
  })
}

export function hasField(credential: HeldCredential, name: string): boolean {
  return findField(credential, name) !== undefined
}

function findField(credential: HeldCredential, name: string): string | undefined {
  const { fields = {} } = credential
  if (Object.hasOwn(fields, name)) return String(fields[name])
  const plain = PLAIN_FIELDS.find((one) => one === (SYNONYMS[name] ?? name))
  return plain === undefined ? undefined : credential[plain]
}
