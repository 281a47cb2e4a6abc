import type { IssuedCredential } from '../../client/wire.ts'
import { CliError, EXIT } from './failure.ts'
import { faultOfVariable } from './variable-names.ts'

/**
 * The secret as environment variables: `<PREFIX>_TOKEN`, or one for each field, such as `<PREFIX>_USERNAME`. The prefix
 * is the user's: the server chooses the names of fields only. Throws `CliError` for a variable that must not be set.
 */
export function variablesOf(
  { token, fields }: Pick<IssuedCredential, 'token' | 'fields'>,
  prefix: string,
): Record<string, string> {
  const parts = fields === undefined ? { token: token ?? '' } : fields
  const entries = Object.entries(parts).map(
    ([name, value]) => [variableName(`${prefix}_${name}`), String(value)] as const,
  )
  for (const [name] of entries) requireVariable(name)
  return Object.fromEntries(entries)
}

function requireVariable(name: string): void {
  const fault = faultOfVariable(name)
  if (fault !== undefined)
    throw new CliError('no_such_variable', `${JSON.stringify(name.slice(0, 60))} ${fault}.`, {
      exit: EXIT.usage,
      hint: 'Choose another prefix with `mayfly get --prefix`, or name the variables with `mayfly run --env`.',
    })
}

function variableName(text: string): string {
  const name = text.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase()
  return /^\d/.test(name) ? `_${name}` : name
}
