import { readFile, stat } from 'node:fs/promises'
import type { ConfigFile, Path } from '../../config/yaml-file.ts'
import { CliError } from '../frame/failure.ts'
import { readCredential } from './read-credential.ts'
import { Faults, isRecord } from './shape.ts'
import type { WantedCredential } from './wanted.ts'

/** In the directory where the command is run, and nowhere above it. */
export const PROJECT_FILE = 'mayfly.yaml'

const MOST_CREDENTIALS = 32
const MOST_TOLD = 5

/**
 * The credentials of a project file, in its order. `shown`: how messages call it. Throws `CliError` (usage) with
 * every fault and its line.
 */
export async function readProjectFile(path: string, shown: string): Promise<WantedCredential[]> {
  const { readConfigFile } = await import('../../config/yaml-file.ts')
  try {
    return readFrom(await readConfigFile(path, shown, readPlainFile))
  } catch (error) {
    throw inWords(error, path, shown)
  }
}

/** A pipe or a device might never end. */
async function readPlainFile(path: string): Promise<Uint8Array> {
  if ((await stat(path)).isFile()) return readFile(path)
  throw Object.assign(new Error('no plain file'), { code: 'EISDIR' })
}

function readFrom(file: ConfigFile): WantedCredential[] {
  const faults = new Faults(file)
  faults.unknownKeys([], file.value, ['credentials'])
  const { credentials } = file.value
  if (!isRecord(credentials) || Object.keys(credentials).length === 0) {
    faults.add(['credentials'], 'credentials must hold at least one credential, each under a name of its own')
    throw faults.error()
  }
  const entries = Object.entries(credentials)
  if (entries.length > MOST_CREDENTIALS)
    faults.add(['credentials'], `there are more than ${MOST_CREDENTIALS} credentials`)
  const wanted = entries.map(([name, value]) => readCredential(faults, ['credentials', name], name, value))
  checkVariables(faults, wanted)
  if (faults.any()) throw faults.error()
  return wanted
}

/** Two values for one variable: the child would see one of them, and nobody knows which. */
function checkVariables(faults: Faults, wanted: readonly WantedCredential[]): void {
  const seen = new Set<string>()
  for (const { name, env, files } of wanted) {
    const at = (where: string, variable: string): Path => ['credentials', name, where, variable]
    const all = [
      ...env.map(({ variable }) => ({ variable, path: at('env', variable) })),
      ...files.map(({ variable }) => ({ variable, path: at('files', variable) })),
    ]
    for (const { variable, path } of all) {
      if (seen.has(variable)) faults.add(path, `${variable} is given twice`, 'key')
      seen.add(variable)
    }
  }
}

function inWords(error: unknown, path: string, shown: string): unknown {
  const { name, faults } = error as { name?: string; faults?: readonly { source: string; message: string }[] }
  if (name !== 'ConfigError' || faults === undefined) return error
  const told = faults
    .slice(0, MOST_TOLD)
    .map(({ source, message }) =>
      (source === shown ? message : `${source}: ${message}`).replaceAll(path, shown),
    )
  const more = faults.length - told.length
  const rest = more > 0 ? `; and ${more} more` : ''
  return new CliError('invalid_file', `${told.join('; ')}${rest}.`, {
    exit: 2,
    hint: 'Correct the file, name another with --config, or leave it out with --no-config.',
    cause: error,
  })
}
