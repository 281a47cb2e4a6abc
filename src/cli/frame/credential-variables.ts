import type { IssuedCredential } from '../../client/wire.ts'
import { isOrdinaryField } from './conventional-variables.ts'
import { CliError, EXIT } from './failure.ts'
import { faultOfVariable } from './variable-names.ts'

type Parts = Pick<IssuedCredential, 'token' | 'fields'>

/**
 * The secret as environment variables: `<PREFIX>_TOKEN`, or one for each ordinary field, such as `<PREFIX>_USERNAME`. The
 * prefix is the user's: the server only chooses among the fields of the list. Throws `CliError` for a variable that must not
 * be set.
 */
export function variablesOf(credential: Parts, prefix: string): Record<string, string> {
  const entries = Object.entries(partsOf(credential))
    .filter(([name]) => isOrdinaryField(name))
    .map(([name, value]) => [variableName(`${prefix}_${name}`), String(value)] as const)
  for (const [name] of entries) requireVariable(name)
  return Object.fromEntries(entries)
}

/** The fields that get no variable by themselves. */
export function unusualFields(credential: Parts): string[] {
  return Object.keys(partsOf(credential)).filter((name) => !isOrdinaryField(name))
}

/** What the variables of this prefix begin with. */
export function variablePrefix(prefix: string): string {
  return variableName(`${prefix}_`)
}

function partsOf({ token, fields }: Parts): Readonly<Record<string, string | number>> {
  return fields === undefined ? { token: token ?? '' } : fields
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
