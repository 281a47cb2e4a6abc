import { constants, type FileHandle, open, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError, usage } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'

const MAX_BYTES = 65_536

/** `findProjectFile` says where it is looked up. */
export const PROJECT_FILE = '.mayfly.yaml'
/** Its name in version 0.1, which is also that of a server's configuration. */
export const OLD_PROJECT_FILE = 'mayfly.yaml'

/** A project file, read once: the bytes that are compared with the allowed ones are the bytes that are parsed. */
export interface ProjectFile {
  /** As the user named it, for messages. */
  readonly shown: string
  /** Absolute, without symbolic links. */
  readonly path: string
  readonly bytes: Uint8Array
}

/**
 * Throws `CliError` (usage) for a file that cannot be read, or, unless the directory is trusted, that another user owns
 * or everybody can change.
 */
export async function openProjectFile(
  { cwd }: Pick<Surroundings, 'cwd'>,
  shown: string,
  { isTrusted = false } = {},
): Promise<ProjectFile> {
  try {
    const path = await realpath(resolve(cwd, shown))
    // O_NONBLOCK: opening a pipe would wait for a writer.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const facts = await file.stat()
      // A pipe or a device might never end.
      if (!facts.isFile()) throw invalid(`${shown} is not a regular file.`)
      if (!isTrusted) checkOwner(shown, facts)
      return { shown, path, bytes: await readBounded(file, shown) }
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    const [{ fileFault }, { quote }] = await Promise.all([
      import('../../files/read-secret.ts'),
      import('../../domain/fault.ts'),
    ])
    throw invalid(`The file ${quote(shown)} ${fileFault(error)}.`, error)
  }
}

/** Whether a file of the old name is a project file, and not the configuration of a server; false for one that cannot be read. */
export async function holdsCredentials(where: Pick<Surroundings, 'cwd'>, shown: string): Promise<boolean> {
  const file = await openProjectFile(where, shown, { isTrusted: true }).catch(() => undefined)
  return file !== undefined && /^(["']?)credentials\1[ \t]*:/m.test(Buffer.from(file.bytes).toString('utf8'))
}

/** Parsing takes quadratic time in the number of keys, and a file in /proc has no size to look at first. */
async function readBounded(file: FileHandle, shown: string): Promise<Uint8Array> {
  const bytes = new Uint8Array(MAX_BYTES + 1)
  let size = 0
  for (let read = 1; read > 0 && size < bytes.length; size += read)
    read = (await file.read(bytes, size, bytes.length - size)).bytesRead
  if (size > MAX_BYTES) throw invalid(`${shown} is larger than ${MAX_BYTES} bytes.`)
  return bytes.subarray(0, size)
}

/**
 * The content is compared with what was allowed, so a group may write: in a checkout with umask 002 the group of each
 * file is often the user's own.
 */
function checkOwner(shown: string, { uid, mode }: { readonly uid: number; readonly mode: number }): void {
  const own = process.getuid?.()
  if (own === undefined) return
  if (uid !== own && uid !== 0)
    throw usage(
      `${shown} belongs to another user.`,
      'Copy it, or trust this directory with --trust-project or MAYFLY_TRUST_PROJECT=1.',
    )
  if ((mode & 0o002) !== 0)
    throw usage(`${shown} can be changed by every user.`, `Run: chmod o-w ${shellWord(shown)}`)
}

function invalid(message: string, cause?: unknown): CliError {
  return new CliError('invalid_file', message, {
    exit: 2,
    hint: 'Choose another file with --config, or ignore it with --no-config.',
    cause,
  })
}
