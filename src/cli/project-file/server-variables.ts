import { strayAddresses } from '../frame/conventional-variables.ts'
import { unusualFields, variablePrefix, variablesOf } from '../frame/credential-variables.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { KindVariables } from './kind-variables.ts'
import { fill } from './template.ts'

interface Asked {
  /** As the user calls it. */
  readonly name: string
  readonly credential: HeldCredential
  /** Of the variables of the fields; undefined where they get none. */
  readonly prefix: string | undefined
  /** Already without what the credential lacks and what the user maps. */
  readonly kind: KindVariables
  /** What the user maps of this credential. */
  readonly mapped?: Readonly<Record<string, string>>
  /** What else the command will have. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface ServerVariables {
  /** By field, after the prefix. */
  readonly spread: Readonly<Record<string, string>>
  readonly kind: KindVariables
  /** What the user should know of them, for standard error. */
  readonly notes: readonly string[]
}

/**
 * The variables that the server has a say in and that may be set for one credential. An address is left out unless its program
 * will use a secret of this credential there, and what replaces a value of the user's is noted.
 */
export function chooseVariables({
  name: of,
  credential,
  prefix,
  kind,
  mapped = {},
  env,
}: Asked): ServerVariables {
  const spread = prefix === undefined ? {} : variablesOf(credential, prefix)
  const named = Object.fromEntries(kind.env.map(({ variable, value }) => [variable, fill(value, credential)]))
  const files = Object.fromEntries(kind.files.map(({ variable }) => [variable, 'a file']))
  const begins = prefix === undefined ? '' : variablePrefix(prefix)
  const stray = new Set(strayAddresses({ ...spread, ...named, ...files, ...mapped }, env, begins))
  for (const name of Object.keys(mapped)) stray.delete(name)
  const isKept = (name: string) => !stray.has(name)
  const chosen = {
    spread: Object.fromEntries(Object.entries(spread).filter(([name]) => isKept(name))),
    kind: {
      env: kind.env.filter(({ variable }) => isKept(variable)),
      files: kind.files,
      unknown: kind.unknown,
    },
  }
  const replaced = Object.entries({ ...spread, ...named, ...files }).filter(
    ([name, value]) => isKept(name) && (env[name] ?? value) !== value,
  )
  const unusual =
    prefix === undefined ? [] : unusualFields(credential).map((one) => JSON.stringify(one.slice(0, 60)))
  return {
    ...chosen,
    notes: [
      ...noteOf(of, 'not set without a secret for the same program', [...stray]),
      ...noteOf(of, 'fields that mayfly puts into a variable only with `run --env`', unusual),
      ...noteOf(
        of,
        'replaces what you had set',
        replaced.map(([name]) => name),
      ),
    ],
  }
}

function noteOf(of: string, what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`mayfly: ${of}: ${what}: ${names.slice(0, 16).join(', ')}.`]
}
