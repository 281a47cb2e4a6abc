import { chmod, constants, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliError } from '../frame/failure.ts'
import { NO_HOME } from '../frame/surroundings.ts'

/** Largest that is read: these files are small. */
const MAX_BYTES = 1024 * 1024

/**
 * Writes a file for this user alone (0600, in a directory of 0700): whole or not at all, and on disk when it
 * returns. Throws `CliError` when it cannot.
 */
export async function writePrivateFile(path: string, text: string, mode = 0o600): Promise<void> {
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(temporary, 'wx', mode)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await chmod(temporary, mode)
    await rename(temporary, path)
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => {})
    throw notWritten(path, cause)
  }
}

/**
 * Undefined when there is none. Throws `CliError` for one that others can read (`openTo: 'readers'`: can change), or
 * that cannot be read.
 */
export async function readPrivateFile(
  path: string,
  { openTo }: { readonly openTo?: 'readers' } = {},
): Promise<string | undefined> {
  try {
    // A pipe in its place must not hold us up.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const facts = await file.stat()
      checkPrivate(path, facts, openTo === 'readers' ? 0o022 : 0o077)
      if (facts.size > MAX_BYTES) throw new CliError('file_too_large', `${path} is too large to be ours.`)
      return await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(String((cause as { code?: unknown }).code))) return undefined
    throw cause
  }
}

/** Nothing happens when there is none. */
export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true })
}

export async function isPresent(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

interface Facts {
  readonly mode: number
  readonly uid: number
  isFile(): boolean
}

function checkPrivate(path: string, facts: Facts, forbidden: number): void {
  if (!facts.isFile())
    throw new CliError('file_unsafe', `${path} is no plain file.`, { hint: 'Move it away.' })
  const own = process.getuid?.()
  if (own === undefined) return
  if (facts.uid !== own && facts.uid !== 0)
    throw new CliError('file_unsafe', `${path} belongs to another user.`, {
      hint: 'Delete it, and log in again.',
    })
  if ((facts.mode & forbidden) === 0) return
  const what = (facts.mode & 0o022) === 0 ? 'read' : 'changed'
  throw new CliError('file_unsafe', `${path} can be ${what} by other users.`, {
    hint: `Run: chmod 600 ${path}`,
  })
}

const WHY: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota is used up',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of the path is no directory',
}

function notWritten(path: string, cause: unknown): CliError {
  if (path.startsWith(`${NO_HOME}/`))
    return new CliError('no_home', 'There is no home directory to keep anything in.', {
      hint: 'Set HOME, or give the login by MAYFLY_TOKEN or MAYFLY_CLIENT_ID.',
      cause,
    })
  const code = (cause as { code?: unknown }).code
  const why =
    (typeof code === 'string' ? WHY[code] : undefined) ?? (cause instanceof Error ? cause.message : '')
  return new CliError('not_written', `${path} cannot be written: ${why}.`, {
    hint: 'Nothing was changed there.',
    cause,
  })
}
