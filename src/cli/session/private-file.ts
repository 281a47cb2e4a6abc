// Without promises: node:fs/promises loads a dozen modules of Node, which every command would wait for.
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { CliError, systemReason } from '../frame/failure.ts'
import { NO_HOME } from '../frame/surroundings.ts'

/** These files are small. */
const MAX_BYTES = 1024 * 1024

/**
 * Writes a file that only this user can read (0600, in a directory of 0700), atomically and durably.
 * Throws `CliError`.
 */
export async function writePrivateFile(path: string, text: string, mode = 0o600): Promise<void> {
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const file = openSync(temporary, 'wx', mode)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    chmodSync(temporary, mode)
    renameSync(temporary, path)
  } catch (cause) {
    removeQuietly(temporary)
    throw notWritten(path, cause)
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // The error that led here says more.
  }
}

/**
 * Undefined if the file does not exist. Throws `CliError` if other users can read it (with `openTo: 'readers'`: if
 * they can change it).
 */
export async function readPrivateFile(
  path: string,
  { openTo }: { readonly openTo?: 'readers' } = {},
): Promise<string | undefined> {
  try {
    // O_NONBLOCK: opening a pipe would wait for a writer.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const facts = fstatSync(file)
      checkPrivate(path, facts, openTo === 'readers' ? 0o022 : 0o077)
      if (facts.size > MAX_BYTES) throw new CliError('file_too_large', `${path} is too large.`)
      return readFileSync(file, 'utf8')
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(String((cause as { code?: unknown }).code))) return undefined
    throw cause
  }
}

/** Does nothing if the file does not exist. */
export async function removeFile(path: string): Promise<void> {
  rmSync(path, { force: true })
}

export async function isPresent(path: string): Promise<boolean> {
  return existsSync(path)
}

interface Facts {
  readonly mode: number
  readonly uid: number
  isFile(): boolean
}

function checkPrivate(path: string, facts: Facts, forbidden: number): void {
  if (!facts.isFile())
    throw new CliError('file_unsafe', `${path} is not a regular file.`, { hint: 'Move it away.' })
  const own = process.getuid?.()
  if (own === undefined) return
  if (facts.uid !== own && facts.uid !== 0)
    throw new CliError('file_unsafe', `${path} belongs to another user.`, {
      hint: 'Delete it and log in again.',
    })
  if ((facts.mode & forbidden) === 0) return
  const what = (facts.mode & 0o022) === 0 ? 'read' : 'changed'
  throw new CliError('file_unsafe', `${path} can be ${what} by other users.`, {
    hint: `Run: chmod 600 ${path}`,
  })
}

function notWritten(path: string, cause: unknown): CliError {
  if (path.startsWith(`${NO_HOME}/`))
    return new CliError('no_home', 'There is no home directory to store the login in.', {
      hint: 'Set HOME, or pass the login in MAYFLY_TOKEN or MAYFLY_CLIENT_ID.',
      cause,
    })
  const why = systemReason(cause) ?? (cause instanceof Error ? cause.message : String(cause))
  return new CliError('not_written', `${path} cannot be written: ${why}.`, {
    hint: 'The file is unchanged.',
    cause,
  })
}
