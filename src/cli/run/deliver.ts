import { join } from 'node:path'
import { variablesOf } from '../frame/credential-variables.ts'
import { CliError } from '../frame/failure.ts'
import { fill, isLasting } from '../project-file/template.ts'
import { faultOfVariable, type WantedCredential } from '../project-file/wanted.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Issuance } from './issued-credentials.ts'
import type { PrivateDirectory } from './private-directory.ts'

/** A credential in the hands of the child. */
export interface Delivery {
  readonly wanted: WantedCredential
  /** Of its files in the private directory. */
  readonly set: string
  readonly issuance: Issuance
}

/** What is in variables cannot be changed in a process that runs: then the credential is not renewed. */
export function isRenewable({ isSpread, env, files }: WantedCredential): boolean {
  return !isSpread && files.length > 0 && env.every(({ value }) => isLasting(value))
}

/** The variables of one credential, without those of its files. Throws `CliError` for what it lacks. */
export function variablesFor(wanted: WantedCredential, credential: HeldCredential): Record<string, string> {
  const spread = wanted.isSpread ? variablesOf(credential, wanted.name) : {}
  const named = wanted.env.map(({ variable, value }) => [variable, fill(value, credential)] as const)
  const all = { ...spread, ...Object.fromEntries(named) }
  for (const [name, value] of Object.entries(all)) checkVariable(wanted.name, name, value)
  return all
}

/** Writes the files of one credential, and returns the variables that hold their paths. */
export async function writeFiles(
  directory: PrivateDirectory,
  { wanted, set }: Pick<Delivery, 'wanted' | 'set'>,
  credential: HeldCredential,
): Promise<Record<string, string>> {
  const texts = wanted.files.map(({ fileName, content }) => ({
    name: fileName,
    text: fill(content, credential),
  }))
  const place = await directory.replace(set, texts)
  return Object.fromEntries(wanted.files.map(({ variable, fileName }) => [variable, join(place, fileName)]))
}

function checkVariable(credential: string, name: string, value: string): void {
  const fault = faultOfVariable(name)
  if (fault !== undefined)
    throw new CliError('no_such_variable', `${credential}: ${JSON.stringify(name)} ${fault}.`, {
      exit: 2,
      hint: 'Choose the names of the variables with --env, or in the project file.',
    })
  // Node would show the value in its own message.
  if (value.includes('\0'))
    throw new CliError('not_text', `${credential}: what ${name} would get holds a NUL byte.`, {
      hint: 'Use --file for it.',
    })
}

/** Fields that are no secrets: to take them out would only spoil the output. */
const OPEN_FIELDS = new Set(['host', 'hostname', 'port', 'user', 'username', 'database', 'schema', 'region'])

/** What must not be seen of a credential. */
export function secretsOf({ token, fields = {} }: HeldCredential): string[] {
  const parts = Object.entries(fields)
    .filter(([name]) => !OPEN_FIELDS.has(name))
    .map(([, value]) => String(value))
  return [token, ...parts]
}
