import type { IssuedCredential } from '../../client/wire.ts'

/** The secret as environment variables: `<PREFIX>_TOKEN`, or one for each field, such as `<PREFIX>_USERNAME`. */
export function variablesOf(
  { backend, token, fields }: Pick<IssuedCredential, 'backend' | 'token' | 'fields'>,
  prefix = backend,
): Record<string, string> {
  const parts = fields === undefined ? { token: token ?? '' } : fields
  return Object.fromEntries(
    Object.entries(parts).map(([name, value]) => [variableName(`${prefix}_${name}`), String(value)]),
  )
}

function variableName(text: string): string {
  const name = text.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase()
  return /^\d/.test(name) ? `_${name}` : name
}

/** A value for a dotenv file: in double quotes, with the escapes that dotenv parsers know. */
export function dotenvQuote(text: string): string {
  const escaped = text
    .replace(/[\\"$`]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
  return `"${escaped}"`
}
