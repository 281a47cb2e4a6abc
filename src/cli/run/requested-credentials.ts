import { lstat, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { readAssignments } from '../frame/assignments.ts'
import { usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { PROJECT_FILE, readProjectFile } from '../project-file/read.ts'
import { parseTemplate, type Template } from '../project-file/template.ts'
import { type FileWish, faultOfVariable, type WantedCredential } from '../project-file/wanted.ts'
import { isPresent } from '../session/private-file.ts'

/** The options of `run` that say which credentials are wanted. */
export interface WishOptions {
  readonly backend?: readonly string[]
  readonly env?: readonly string[]
  readonly file?: readonly string[]
  readonly ttl?: string
  readonly scope?: readonly string[]
  readonly param?: readonly string[]
  /** False with `--no-config`. */
  readonly config?: string | boolean
}

/**
 * What the flags name, and what is in the project file that is named or, without any flag, in the directory.
 * Throws `CliError` (usage) for what is wrong, and when nothing is wanted.
 */
export async function readWishes(context: Context, options: WishOptions): Promise<WantedCredential[]> {
  const byFlags = wishesOfFlags(options)
  const file = await projectFile(context, options, byFlags.length > 0)
  const byFile = file === undefined ? [] : await readProjectFile(resolve(context.cwd, file), file)
  const all = [...byFile, ...byFlags]
  checkOnce(all)
  if (all.length > 0) return all
  throw usage(
    'No credentials are named.',
    `Name them with --backend, --env or --file, or in a ${PROJECT_FILE} in this directory.`,
  )
}

async function projectFile(
  { cwd }: Context,
  { config }: WishOptions,
  hasFlags: boolean,
): Promise<string | undefined> {
  if (typeof config === 'string') return config
  if (config === false || hasFlags) return undefined
  if (!(await isPresent(resolve(cwd, PROJECT_FILE)))) return undefined
  if (await isPlanted(resolve(cwd, PROJECT_FILE), cwd))
    throw usage(
      `The ${PROJECT_FILE} in this directory is somebody else’s, and anybody may put one there.`,
      `Read it, then name it with --config ${PROJECT_FILE}, or leave it out with --no-config.`,
    )
  return PROJECT_FILE
}

/** In a place such as /tmp. A directory of one's own may well hold files of other users: a checkout in a container. */
async function isPlanted(path: string, directory: string): Promise<boolean> {
  const own = process.getuid?.()
  const [file, { mode }] = await Promise.all([lstat(path), stat(directory)])
  return own !== undefined && (mode & 0o002) !== 0 && file.uid !== own && file.uid !== 0
}

interface FlagWish {
  isSpread: boolean
  readonly env: { variable: string; value: Template }[]
  readonly files: FileWish[]
}

/** One credential for each backend, however often it is named. */
function wishesOfFlags(options: WishOptions): WantedCredential[] {
  const wishes = new Map<string, FlagWish>()
  const wishOf = (backend: string): FlagWish => {
    const known = wishes.get(backend) ?? { isSpread: false, env: [], files: [] }
    wishes.set(backend, known)
    return known
  }
  for (const backend of options.backend ?? []) {
    if (backend === '') throw usage('--backend is empty.', 'See which there are with `mayfly backends`.')
    wishOf(backend).isSpread = true
  }
  for (const text of options.env ?? []) {
    const { variable, backend, field } = readBinding('--env', text)
    wishOf(backend).env.push({ variable, value: field })
  }
  for (const text of options.file ?? []) {
    const { variable, backend, field } = readBinding('--file', text)
    wishOf(backend).files.push({ variable, fileName: variable, content: field })
  }
  const backends = [...wishes.keys()]
  const scopes = scopesOf(options.scope ?? [], backends)
  const params = readAssignments(options.param, '--param')
  const tuned = [params, options.ttl].some((one) => one !== undefined)
  if (tuned && backends.length === 0)
    throw usage('--ttl and --param are for credentials that flags name.', 'Put them into the project file.')
  if (params !== undefined && backends.length > 1)
    throw usage('--param is for one backend, and there are several.', 'Use a project file.')
  return [...wishes].map(([backend, wish]) => ({
    name: backend,
    request: {
      backend,
      ...(options.ttl === undefined ? {} : { ttl: options.ttl }),
      ...(scopes.has(backend) ? { scopes: scopes.get(backend) ?? [] } : {}),
      ...(params === undefined ? {} : { params }),
    },
    ...wish,
  }))
}

const BINDING = /^([^=]*)=([^:]+)(?::(.*))?$/s

/** `VARIABLE=BACKEND` or `VARIABLE=BACKEND:FIELD`. The text itself is not repeated: it may hold a secret by mistake. */
function readBinding(flag: string, text: string): { variable: string; backend: string; field: Template } {
  const [, variable, backend, name = 'token'] = BINDING.exec(text) ?? []
  const field = parseTemplate(name)
  if (variable === undefined || backend === undefined || field === undefined)
    throw usage(
      `${flag} is given as VARIABLE=BACKEND or VARIABLE=BACKEND:FIELD.`,
      `Such as ${flag} PGPASSWORD=orders-db:password.`,
    )
  const fault = faultOfVariable(variable)
  if (fault !== undefined)
    throw usage(`${flag}: ${JSON.stringify(variable.slice(0, 60))} ${fault}.`, 'Choose another name.')
  return { variable, backend, field }
}

/** A scope goes to the backend that it begins with; where there is one backend only, to that one. */
function scopesOf(scopes: readonly string[], backends: readonly string[]): Map<string, string[]> {
  const given = new Map<string, string[]>()
  for (const scope of scopes) {
    const named = backends.find((one) => scope === one || scope.startsWith(`${one}:`))
    const backend = named ?? (backends.length === 1 ? backends[0] : undefined)
    if (backend === undefined)
      throw usage(
        `It is not clear which backend the scope ${JSON.stringify(scope.slice(0, 80))} is for.`,
        'Put the backend in front: --scope BACKEND:SCOPE.',
      )
    given.set(backend, [...(given.get(backend) ?? []), scope])
  }
  return given
}

function checkOnce(all: readonly WantedCredential[]): void {
  const seen = new Set<string>()
  for (const { variable } of all.flatMap(({ env, files }) => [...env, ...files])) {
    if (seen.has(variable)) throw usage(`${variable} is given twice.`, 'Name each variable once.')
    seen.add(variable)
  }
}
