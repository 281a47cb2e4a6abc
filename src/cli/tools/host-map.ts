import { parseJson } from '../../domain/formats/json.ts'
import { CliError, type ExitCode } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import type { AnyVerb, Context } from '../frame/verb.ts'
import type { wayTo } from '../git/wrapper.ts'
import { changeAlone } from '../session/file-lock.ts'
import { configPath } from '../session/paths.ts'
import { readPrivateFile, writePrivateFile } from '../session/private-file.ts'

/** Tools that ask for a credential by host alone. */
export type HostTool = 'docker' | 'terraform'

/** The backend that issues for a host, and how to reach its server. No secret. */
export interface HostEntry {
  readonly backend: string
  readonly ttl?: string | undefined
  readonly scope?: string[] | undefined
  readonly param?: string[] | undefined
  /** For docker, if the backend gives none. */
  readonly username?: string | undefined
  readonly way: ReturnType<typeof wayTo>
}

type Hosts = Readonly<Record<string, HostEntry>>
type HostMap = Partial<Readonly<Record<HostTool, Hosts>>>

const pathOf = (where: Pick<Surroundings, 'env' | 'home'>) => configPath(where, 'hosts.json')

/** By host. Throws `CliError` for a file in another format. */
export async function readHosts(context: Context, tool: HostTool): Promise<ReadonlyMap<string, HostEntry>> {
  return new Map(Object.entries((await readAll(context))[tool] ?? {}))
}

/**
 * Runs a set-up, or what undoes one, alone: it reads and replaces our map, and then the configuration of the tool. Two at
 * one moment would each lose the other's entry.
 */
export function changeHosts<T>(context: Context, change: () => Promise<T>): Promise<T> {
  return changeAlone({ file: pathOf(context) }, context.signal, change)
}

/** Within `changeHosts`: sets an entry, or removes it if `entry` is undefined. Returns whether there was one. */
export async function writeHost(
  context: Context,
  tool: HostTool,
  host: string,
  entry: HostEntry | undefined,
): Promise<boolean> {
  const all = await readAll(context)
  const hosts = new Map(Object.entries(all[tool] ?? {}))
  const was = hosts.delete(host)
  if (entry !== undefined) hosts.set(host, entry)
  if (entry === undefined && !was) return false
  const changed = { ...all, [tool]: Object.fromEntries(hosts) }
  await writePrivateFile(pathOf(context), `${JSON.stringify(changed, null, 2)}\n`)
  return was
}

async function readAll(context: Context): Promise<HostMap> {
  const path = pathOf(context)
  const text = await readPrivateFile(path)
  if (text === undefined) return {}
  const value = parseJson(text) as HostMap | null | undefined
  if (value != null && isMap(value.docker) && isMap(value.terraform)) return value
  throw new CliError('hosts_broken', `${path} is not in the format that mayfly writes.`, {
    hint: 'Correct it, or delete it and set up the hosts again.',
  })
}

function isMap(value: unknown): boolean {
  if (value === undefined) return true
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).every(
    (one: Partial<HostEntry> | null) =>
      typeof one?.backend === 'string' && typeof one.way?.server === 'string',
  )
}

/** Works for a host, and explains a failure by the settings of that host's server, not by those of the environment. */
export async function atHost<T>(
  context: Context,
  entry: HostEntry,
  verb: AnyVerb,
  work: (ours: Context) => Promise<T>,
): Promise<T> {
  const ours = contextFor(context, entry)
  try {
    return await work(ours)
  } catch (error) {
    const { explain } = await import('../session/explain.ts')
    const { code, message, hint, exitCode } = await explain(ours, verb, error)
    // A signal or a closed pipe has no words.
    if (message === '') throw error
    const exit = exitCode as ExitCode
    throw new CliError(code, message, { exit, cause: error, hint })
  }
}

/** The context for a host's server. Only the flags of this call take precedence, not the environment. */
function contextFor(context: Context, { way }: HostEntry): Context {
  const { globals } = context
  if (globals.server !== undefined) return context
  const { profile = way.profile, ca = way.caFile } = globals
  const keychain = globals.keychain !== false && way.keychain
  return { ...context, globals: { ...globals, server: way.server, profile, ca, keychain } }
}
