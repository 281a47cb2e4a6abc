import { lstat, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError, systemReason } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { openPrivateDirectory, type PrivateDirectory } from './private-directory.ts'

/** Where a proxy that stands alone keeps files for the programs that it serves. */
export interface ProxyPlace {
  /** Of the proxy itself. */
  readonly directory: string
  /** For what is delivered. */
  readonly files: PrivateDirectory
  /** Absolute; undefined: nobody wants one. */
  readonly envFile: string | undefined
  /** Writes the environment, for shells, systemd and containers. */
  write(variables: Readonly<Record<string, string | undefined>>): Promise<void>
  remove(): Promise<void>
}

/** Less the umask: the service under another user decides by it whether its group may read. */
const DIRECTORY_MODE = 0o750
const FILE_MODE = 0o640

/** Throws `CliError` where the environment file cannot be written, before anything is issued. */
export async function openProxyPlace(context: Context, envFile: string | undefined): Promise<ProxyPlace> {
  if (envFile === undefined) {
    const files = await openPrivateDirectory(context)
    const directory = join(files.path, 'proxy')
    await mkdir(directory, { mode: 0o700 })
    return { directory, files, envFile, write: async () => {}, remove: files.remove }
  }
  const path = resolve(context.cwd, envFile)
  const beside = `${path}.d`
  try {
    await requireOurs(path, beside)
    // What stands there is of a proxy that was killed: nobody must start with it.
    await rm(path, { force: true })
    await removeOurs(beside)
    await mkdir(beside, { mode: DIRECTORY_MODE })
    await writeFile(join(beside, MARK), '', { mode: FILE_MODE, flag: 'wx' })
  } catch (error) {
    throw notWritten(beside, error)
  }
  return {
    directory: beside,
    files: directoryFor(beside),
    envFile: path,
    write: (variables) => writeEnvironment(path, variables),
    remove: async () => {
      await rm(path, { force: true })
      await removeOurs(beside)
    },
  }
}

/** In the directory of each proxy, and in none of somebody's own. */
const MARK = '.mayfly-proxy'

/**
 * Nothing is removed that no proxy of this user has made: in a directory that others can write, one of this name could be
 * anybody's, and a `.env` is often the user's own.
 */
async function requireOurs(path: string, beside: string): Promise<void> {
  const directory = await lstat(beside).catch(() => undefined)
  if (directory !== undefined && (!directory.isDirectory() || directory.uid !== process.getuid?.()))
    throw taken(`${beside} is there already, and is no directory of this user.`)
  const names = directory === undefined ? [] : await readdir(beside)
  const isOurs = names.includes(MARK)
  if (names.length > 0 && !isOurs) throw taken(`${beside} has files that no proxy has made.`)
  if (!isOurs && (await lstat(path).catch(() => undefined)) !== undefined)
    throw taken(`${path} is there already, and no proxy has written it.`)
}

/** The mark goes last: the next proxy knows what one that is killed here has left. */
async function removeOurs(beside: string): Promise<void> {
  const all = { recursive: true, force: true, maxRetries: 3 }
  const names = await readdir(beside).catch(() => [])
  for (const name of names) if (name !== MARK) await rm(join(beside, name), all)
  await rm(beside, all)
}

const taken = (message: string) =>
  new CliError('not_ours', message, { exit: 2, hint: 'Remove it, or choose another --write-env.' })

/** Placeholders are written once: nothing is replaced while somebody reads it. */
function directoryFor(path: string): PrivateDirectory {
  return {
    path,
    replace: async (set, files) => {
      const directory = join(path, set)
      await mkdir(directory, { mode: DIRECTORY_MODE })
      for (const { name, text } of files)
        await writeFile(join(directory, name), text, { mode: FILE_MODE, flag: 'wx' })
      return directory
    },
    remove: () => removeOurs(path),
  }
}

async function writeEnvironment(
  path: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const temporary = join(dirname(path), `.mayfly-${randomBytes(6).toString('hex')}.tmp`)
  try {
    const file = await open(temporary, 'wx', FILE_MODE)
    try {
      await file.writeFile(environmentText(variables))
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw notWritten(path, error)
  }
}

/** One line for each variable. Shells and systemd read quotes, containers do not: they stand only where they must. */
export function environmentText(variables: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(variables)
    .map(([name, value = '']) => {
      if (value.includes('\0'))
        throw new CliError('not_text', `The value of ${name} contains a NUL byte.`, {
          hint: 'Pass it in a file: `files:` in the file of --config.',
        })
      return `${name}=${value === '' ? '' : shellWord(value)}\n`
    })
    .join('')
}

function notWritten(path: string, cause: unknown): CliError {
  if (cause instanceof CliError) return cause
  return new CliError('not_written', `Cannot write ${path}: ${systemReason(cause) ?? 'it failed'}.`, {
    hint: 'Choose another --write-env.',
    cause,
  })
}
