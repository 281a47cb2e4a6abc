import { CliError } from '../frame/failure.ts'
import type { HeldCredential } from '../session/held-credential.ts'

/** Every credential has these besides its own fields. */
const PLAIN_FIELDS = ['token', 'id', 'expires_at', 'created_at', 'ttl'] as const

/** A field of a credential as text. Throws `CliError` for one it lacks. */
export function fieldOf(credential: HeldCredential, name: string): string {
  const { fields = {} } = credential
  if (Object.hasOwn(fields, name)) return String(fields[name])
  const plain = PLAIN_FIELDS.find((one) => one === name)
  if (plain !== undefined) return credential[plain]
  const shown = JSON.stringify(name.slice(0, 40))
  throw new CliError('no_such_field', `A credential of ${credential.backend} has no field ${shown}.`, {
    exit: 2,
    hint: `It has: ${[...Object.keys(fields), ...PLAIN_FIELDS].join(', ')}.`,
  })
}
