import { isObject } from '../../domain/formats/json.ts'
import type { ConfigFile, Path } from '../../files/yaml-file.ts'
import { CliError } from '../frame/failure.ts'
import type { ProjectFile } from './open.ts'
import { type ProxyWish, readProjectProxy } from './proxy-wish.ts'
import { readCredential } from './read-credential.ts'
import type { RequestedCredential } from './requested-credential.ts'
import { Faults } from './shape.ts'

const MOST_CREDENTIALS = 32
const MOST_REPORTED = 5

/** What a project file asks for. */
export interface Project {
  /** In its order. */
  readonly credentials: readonly RequestedCredential[]
  /** Undefined: the command gets the secrets themselves. */
  readonly proxy: ProxyWish | undefined
}

/** Throws `CliError` (usage) with every mistake and its line. */
export async function readProjectFile({ path, shown, bytes }: ProjectFile): Promise<Project> {
  const { readConfigFile } = await import('../../files/yaml-file.ts')
  try {
    return readFrom(await readConfigFile(path, shown, () => Promise.resolve(bytes)))
  } catch (error) {
    throw inWords(error, path, shown)
  }
}

function readFrom(file: ConfigFile): Project {
  const faults = new Faults(file)
  faults.unknownKeys([], file.value, ['credentials', 'proxy'])
  const proxy = readProjectProxy(faults, ['proxy'], file.value['proxy'])
  const credentials = readCredentials(faults, file)
  if (faults.any()) throw faults.error()
  return { credentials, proxy }
}

/** Those of a file, in its order. Adds every mistake to `faults`. */
export function readCredentials(faults: Faults, file: ConfigFile): RequestedCredential[] {
  const { credentials } = file.value
  if (!isObject(credentials) || Object.keys(credentials).length === 0) {
    faults.add(['credentials'], 'credentials must hold at least one credential, each under its own name')
    return []
  }
  const entries = Object.entries(credentials)
  if (entries.length > MOST_CREDENTIALS)
    faults.add(['credentials'], `there are more than ${MOST_CREDENTIALS} credentials`)
  const requested = entries.map(([name, value]) => readCredential(faults, ['credentials', name], name, value))
  checkVariables(faults, requested)
  return requested
}

/** With two values for one variable, the child would see an arbitrary one. */
function checkVariables(faults: Faults, requested: readonly RequestedCredential[]): void {
  const seen = new Set<string>()
  for (const { name, env, files } of requested) {
    const at = (where: string, variable: string): Path => ['credentials', name, where, variable]
    const all = [
      ...env.map(({ variable }) => ({ variable, path: at('env', variable) })),
      ...files.map(({ variable }) => ({ variable, path: at('files', variable) })),
    ]
    for (const { variable, path } of all) {
      if (seen.has(variable)) faults.add(path, `${variable} is set twice`, 'key')
      seen.add(variable)
    }
  }
}

export function inWords(error: unknown, path: string, shown: string): unknown {
  const { name, faults } = error as { name?: string; faults?: readonly { source: string; message: string }[] }
  if (name !== 'ConfigError' || faults === undefined) return error
  const reported = faults
    .slice(0, MOST_REPORTED)
    .map(({ source, message }) =>
      (source === shown ? message : `${source}: ${message}`).replaceAll(path, shown),
    )
  const more = faults.length - reported.length
  const rest = more > 0 ? `; and ${more} more` : ''
  return new CliError('invalid_file', `${reported.join('; ')}${rest}.`, {
    exit: 2,
    hint: 'Correct the file, choose another with --config, or ignore it with --no-config.',
    cause: error,
  })
}
