import { readAssignments } from '../frame/assignments.ts'
import { usage } from '../frame/failure.ts'
import { flag, many, off, PARAM, text, type ValuesOf } from '../frame/options.ts'
import { faultOfVariable } from '../frame/variable-names.ts'
import type { Context } from '../frame/verb.ts'
import { requireAllowed } from '../project-file/allowed.ts'
import { findProjectFile, noteOldName } from '../project-file/find.ts'
import { openProjectFile, PROJECT_FILE } from '../project-file/open.ts'
import { type Project, readProjectFile } from '../project-file/read.ts'
import type { RequestedCredential, RequestedFile } from '../project-file/requested-credential.ts'
import { parseTemplate, type Template } from '../project-file/template.ts'

/** The options of `run` that request credentials. */
export const CREDENTIAL_OPTIONS = {
  backend: many(
    '<name>',
    'set every field of a credential as a variable, and the variables that the programs of its kind read, as `mayfly get -o env`; may be repeated',
    { values: 'backends' },
  ),
  env: many('<VARIABLE=backend:field>', 'set a variable to one field, by default the token; may be repeated'),
  file: many(
    '<VARIABLE=backend:field>',
    'write one field to a private file and set a variable to its path; may be repeated',
  ),
  ttl: text('<duration>', 'lifetime of the credentials, such as 10m'),
  scope: many('<scope>', 'request only this scope; BACKEND:SCOPE with several backends; may be repeated', {
    values: 'scopes',
  }),
  ...PARAM,
  config: text('<file>', 'also read this file, in the format of .mayfly.yaml'),
  noConfig: off('use no .mayfly.yaml'),
  trustProject: flag('use the project file without `mayfly allow`, as in CI [env: MAYFLY_TRUST_PROJECT=1]'),
}

type CredentialOptions = ValuesOf<typeof CREDENTIAL_OPTIONS>

/**
 * The credentials that flags request, and those of the project file: the one named by --config or, without flags, the
 * one that `findProjectFile` finds, with what that says of the proxy. Throws `CliError` (usage) for mistakes and when no credential is requested.
 */
export async function readRequested(context: Context, options: CredentialOptions): Promise<Project> {
  const byFlags = requestedByFlags(options)
  const file = await projectFile(context, options, byFlags.length > 0)
  const byFile = file === undefined ? undefined : await requestedByFile(context, file, options)
  const credentials = [...(byFile?.credentials ?? []), ...byFlags]
  checkOnce(credentials)
  if (credentials.length > 0) return { credentials, proxy: byFile?.proxy }
  throw usage(
    'No credentials requested.',
    `Request them with --backend, --env or --file, or in a ${PROJECT_FILE} in this directory or its repository.`,
  )
}

async function projectFile(
  context: Context,
  { config }: CredentialOptions,
  hasFlags: boolean,
): Promise<string | undefined> {
  if (typeof config === 'string') return config
  if (config === false || hasFlags) return undefined
  const found = await findProjectFile(context)
  if (found !== undefined) noteOldName(context, found)
  return found
}

/** The file may come with somebody else's repository: it is not even parsed before a person has allowed it. */
async function requestedByFile(
  context: Context,
  name: string,
  { trustProject }: CredentialOptions,
): Promise<Project> {
  const isTrusted = trustProject === true || /^(?:1|true)$/.test(context.env['MAYFLY_TRUST_PROJECT'] ?? '')
  const file = await openProjectFile(context, name, { isTrusted })
  if (!isTrusted) await requireAllowed(context, file)
  return readProjectFile(file)
}

interface FlagRequest {
  isSpread: boolean
  readonly env: { variable: string; value: Template }[]
  readonly files: RequestedFile[]
}

/** One credential per backend, however often the flags name it. */
export function requestedByFlags(options: Omit<CredentialOptions, 'config'>): RequestedCredential[] {
  const byBackend = new Map<string, FlagRequest>()
  const requestFor = (backend: string): FlagRequest => {
    const known = byBackend.get(backend) ?? { isSpread: false, env: [], files: [] }
    byBackend.set(backend, known)
    return known
  }
  for (const backend of options.backend ?? []) {
    if (backend === '') throw usage('--backend is empty.', 'List them with `mayfly backends`.')
    if (backend.includes(':'))
      throw usage(
        '--backend takes the name of a backend alone.',
        `For one of its scopes, write --backend ${backend.slice(0, backend.indexOf(':'))} --scope ${backend}.`,
      )
    requestFor(backend).isSpread = true
  }
  for (const text of options.env ?? []) {
    const { variable, backend, field } = readBinding('--env', text)
    requestFor(backend).env.push({ variable, value: field })
  }
  for (const text of options.file ?? []) {
    const { variable, backend, field } = readBinding('--file', text)
    requestFor(backend).files.push({ variable, fileName: variable, content: field })
  }
  const backends = [...byBackend.keys()]
  const scopes = scopesOf(options.scope ?? [], backends)
  const params = readAssignments(options.param, '--param')
  const tuned = [params, options.ttl].some((one) => one !== undefined)
  if (tuned && backends.length === 0)
    throw usage(
      '--ttl and --param apply only to credentials requested by flags.',
      'Set them in the project file.',
    )
  if (params !== undefined && backends.length > 1)
    throw usage('--param applies to a single backend, and several are named.', 'Use a project file.')
  return [...byBackend].map(([backend, flags]) => ({
    name: backend,
    request: { backend, ttl: options.ttl, scopes: scopes.get(backend), params },
    ...flags,
  }))
}

const BINDING = /^([^=]*)=([^:]+)(?::(.*))?$/s

/** `VARIABLE=BACKEND` or `VARIABLE=BACKEND:FIELD`. Errors do not repeat the text: it may hold a secret by mistake. */
function readBinding(flag: string, text: string): { variable: string; backend: string; field: Template } {
  const [, variable, backend, name = 'token'] = BINDING.exec(text) ?? []
  const field = parseTemplate(name)
  if (variable === undefined || backend === undefined || field === undefined)
    throw usage(
      `${flag} takes VARIABLE=BACKEND or VARIABLE=BACKEND:FIELD.`,
      `Example: ${flag} PGPASSWORD=orders-db:password.`,
    )
  const fault = faultOfVariable(variable)
  if (fault !== undefined)
    throw usage(`${flag}: ${JSON.stringify(variable.slice(0, 60))} ${fault}.`, 'Choose another name.')
  return { variable, backend, field }
}

/** A scope belongs to the backend it begins with, or to the only backend. */
function scopesOf(scopes: readonly string[], backends: readonly string[]): Map<string, string[]> {
  const given = new Map<string, string[]>()
  for (const scope of scopes) {
    const named = backends.find((one) => scope === one || scope.startsWith(`${one}:`))
    const backend = named ?? (backends.length === 1 ? backends[0] : undefined)
    if (backend === undefined)
      throw usage(
        `Cannot tell which backend the scope ${JSON.stringify(scope.slice(0, 80))} belongs to.`,
        'Prefix it with the backend: --scope BACKEND:SCOPE.',
      )
    given.set(backend, [...(given.get(backend) ?? []), scope])
  }
  return given
}

export function checkOnce(all: readonly RequestedCredential[]): void {
  const seen = new Set<string>()
  for (const { variable } of all.flatMap(({ env, files }) => [...env, ...files])) {
    if (seen.has(variable)) throw usage(`${variable} is set twice.`, 'Set each variable once.')
    seen.add(variable)
  }
}
