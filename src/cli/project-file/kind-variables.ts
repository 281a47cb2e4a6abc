import type { Client } from '../../client/client.ts'
import { isConventional } from '../frame/conventional-variables.ts'
import { CliError } from '../frame/failure.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { hasField } from './credential-field.ts'
import type { RequestedCredential } from './requested-credential.ts'
import { fieldsOf, parseKindTemplate } from './template.ts'

/** Variables that the programs of an upstream read, and how a kind fills them. */
export type KindVariables = Pick<RequestedCredential, 'env' | 'files'> & {
  /** Variables that the kind names and this command does not know. */
  readonly unknown: readonly string[]
}

export const NONE: KindVariables = { env: [], files: [], unknown: [] }
const MOST = 32

/** Those of the kind of a backend; none if there is no such backend, which issuing reports better. */
export async function askKindVariables(
  client: Pick<Client, 'backend'>,
  backend: string,
): Promise<KindVariables> {
  try {
    return readKindVariables((await client.backend(backend)).environment)
  } catch (error) {
    if ((error as { status?: unknown }).status === 404) return NONE
    throw error
  }
}

/** Throws `CliError` for what no kind says. */
export function readKindVariables(environment: unknown): KindVariables {
  if (environment === undefined) return NONE
  if (typeof environment !== 'object' || environment === null || Object.keys(environment).length > MOST)
    throw malformed()
  const forms = Object.entries(environment).map(([variable, form]) => ({ variable, ...textOf(form) }))
  const known = forms.filter(({ variable, text }) => isConventional(variable, text))
  return {
    env: known.flatMap(({ variable, text, isFile }) =>
      isFile ? [] : [{ variable, value: parseKindTemplate(text), mayLast: true as const }],
    ),
    files: known.flatMap(({ variable, text, isFile }) =>
      isFile
        ? [{ variable, fileName: variable, content: parseKindTemplate(text), isChecked: true as const }]
        : [],
    ),
    unknown: forms.filter((one) => !known.includes(one)).map(({ variable }) => variable),
  }
}

/** Without variables whose fields this credential lacks: some upstreams give a field only sometimes. */
export function variablesWithin(kind: KindVariables, credential: HeldCredential): KindVariables {
  const isFull = (template: Parameters<typeof fieldsOf>[0]) =>
    fieldsOf(template).every((field) => hasField(credential, field))
  return {
    env: kind.env.filter(({ value }) => isFull(value)),
    files: kind.files.filter(({ content }) => isFull(content)),
    unknown: kind.unknown,
  }
}

function textOf(form: unknown): { readonly text: string; readonly isFile: boolean } {
  if (typeof form === 'string') return { text: form, isFile: false }
  const file = typeof form === 'object' && form !== null ? (form as { file?: unknown }).file : undefined
  if (typeof file !== 'string') throw malformed()
  return { text: file, isFile: true }
}

function malformed(): CliError {
  return new CliError('unexpected_reply', 'The server sent variables that cannot be read.', {
    hint: 'Tell the administrator of the server, or name the variables with `mayfly run --env`.',
  })
}
