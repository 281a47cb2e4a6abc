import { join } from 'node:path'
import { isOpenField } from '../../domain/open-fields.ts'
import { CliError } from '../frame/failure.ts'
import { hasField } from '../project-file/credential-field.ts'
import type { RequestedCredential } from '../project-file/requested-credential.ts'
import { fieldsOf, fill, isLasting } from '../project-file/template.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Issuance } from './issued-credentials.ts'
import { plainKubeconfig } from './plain-kubeconfig.ts'
import type { PrivateDirectory } from './private-directory.ts'

/** A credential as delivered to the child. */
export interface Delivery {
  readonly requested: RequestedCredential
  /** Names its files in the private directory. */
  readonly set: string
  readonly issuance: Issuance
  /** Variables of its fields, where nothing maps them. */
  readonly spread?: Readonly<Record<string, string>>
}

/** The environment of a running process cannot be changed, so only a credential in files is renewed. */
export function isRenewable({ isSpread, env, files }: RequestedCredential): boolean {
  return !isSpread && files.length > 0 && env.every(({ value, mayLast }) => mayLast || isLasting(value))
}

/** Whether the variables that the command already has are right for this credential, too. */
export function fitsVariables({ requested, issuance }: Delivery, next: HeldCredential): boolean {
  return requested.env.every(
    ({ value, mayLast }) =>
      !mayLast ||
      (fieldsOf(value).every((field) => hasField(next, field)) &&
        fill(value, next) === fill(value, issuance.credential)),
  )
}

/** The variables of one credential, without those of its files. Throws `CliError` for a missing field. */
export function variablesFor(
  requested: RequestedCredential,
  credential: HeldCredential,
  spread: Delivery['spread'] = {},
): Record<string, string> {
  const named = requested.env.map(({ variable, value }) => [variable, fill(value, credential)] as const)
  const all = { ...spread, ...Object.fromEntries(named) }
  for (const [name, value] of Object.entries(all)) checkText(requested.name, name, value)
  return all
}

/** Writes the files of one credential. Returns the variables that hold their paths. */
export async function writeFiles(
  openDirectory: () => Promise<PrivateDirectory>,
  { requested: { files }, set }: Pick<Delivery, 'requested' | 'set'>,
  credential: HeldCredential,
): Promise<Record<string, string>> {
  if (files.length === 0) return {}
  const texts = await Promise.all(
    files.map(async ({ variable, fileName, content, isChecked }) => {
      const text = fill(content, credential)
      const isPlain = variable !== 'KUBECONFIG' || isChecked !== true
      return { name: fileName, text: isPlain ? text : await plainKubeconfig(text) }
    }),
  )
  const place = await (await openDirectory()).replace(set, texts)
  return Object.fromEntries(files.map(({ variable, fileName }) => [variable, join(place, fileName)]))
}

/** Node would print the value in its own message. */
function checkText(credential: string, name: string, value: string): void {
  if (value.includes('\0'))
    throw new CliError('not_text', `${credential}: the value for ${name} contains a NUL byte.`, {
      hint: 'Pass it in a file with --file.',
    })
}

/** Every value of a credential that must not appear in the output, with the name of its field. */
export function secretsOf({ token, fields = {} }: HeldCredential): [name: string, secret: string][] {
  const parts = Object.entries(fields).filter(([name]) => !isOpenField(name))
  return [['token', token], ...parts.map(([name, value]): [string, string] => [name, String(value)])]
}
