import { createHash } from 'node:crypto'
import { constants, rmSync, type Stats } from 'node:fs'
import {
  chmod,
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { misconfigured } from '../../domain/backend-error.ts'
import { SHA256_PATTERN, type StoredPlugin } from '../../domain/plugin.ts'
import { isAbandoned, newPlace } from '../../plugins/process/place.ts'
import type { Program } from '../../plugins/process/program.ts'
import { entryOf, packageRoot } from './package-entry.ts'
import { BadArchive, isArchive, readTarball } from './tarball.ts'

/** Of an artefact, and of what it unpacks to. */
export const MAX_ARTEFACT_BYTES = 256 * 1024 * 1024
const MAX_UNPACKED_BYTES = 512 * 1024 * 1024
const CHUNK = 1024 * 1024

type Pin = Pick<StoredPlugin, 'sha256' | 'runtime'>

export interface PrepareOptions {
  readonly directory: string
  /** Another user than that of the server must read the copy. */
  readonly isShared: boolean
}

/**
 * Copies an artefact from the directory of plugins, and gives the copy only if its bytes have this hash. The file is opened once
 * and its path is not used again, so nothing can be put in its place between the check and the start. Throws `BackendError`
 * (`misconfigured`).
 */
export async function prepareArtefact(
  pin: Pin,
  options: PrepareOptions,
): Promise<Program & { bytes: number }> {
  await requirePrivate(options.directory).catch((error: Error) => {
    throw isMissing(error.cause) ? lacking(pin, options) : refused(error.message, error)
  })
  const folder = newPlace()
  const close = () => rm(folder, { recursive: true, force: true })
  try {
    const copy = join(folder, pin.runtime === 'executable' ? 'plugin' : 'artefact')
    const bytes = await copyChecked(pin, options.directory, copy)
    const entry = pin.runtime === 'executable' ? copy : await unpack(copy, folder)
    await chmod(entry, pin.runtime === 'executable' ? 0o500 : 0o400)
    if (options.isShared) await openToReaders(folder)
    return { runtime: pin.runtime, entry, folder, bytes, close }
  } catch (error) {
    await close()
    if (error instanceof BadArchive) throw refused(`The package cannot be used: ${error.message}.`, error)
    throw error
  }
}

/** Writes and hashes the same bytes. */
async function copyChecked({ sha256 }: Pin, directory: string, copy: string): Promise<number> {
  const source = await openArtefact(directory, sha256)
  try {
    const target = await open(copy, 'wx', 0o600)
    try {
      const { hash, bytes } = await copyHashed(source, target)
      if (hash === sha256) return bytes
      throw refused(`The file ${sha256} in plugin_dir has other bytes than those that were added.`)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** A link is not followed: it would lead to a file that others can change while it is read. */
async function openArtefact(directory: string, sha256: string): Promise<FileHandle> {
  if (!new RegExp(SHA256_PATTERN).test(sha256)) throw refused('The hash is not in hexadecimal form.')
  const handle = await open(join(directory, sha256), constants.O_RDONLY | constants.O_NOFOLLOW).catch(
    (error: { code?: string }) => {
      if (isMissing(error)) throw lacking({ sha256 }, { directory })
      throw refused(
        error.code === 'ELOOP'
          ? `The file ${sha256} in plugin_dir is a symbolic link.`
          : `The file ${sha256} in plugin_dir cannot be read (${error.code}).`,
        error,
      )
    },
  )
  const facts = await handle.stat()
  if (facts.isFile() && facts.size <= MAX_ARTEFACT_BYTES) return handle
  await handle.close()
  throw refused(`The file ${sha256} in plugin_dir is no regular file of at most ${MAX_ARTEFACT_BYTES} bytes.`)
}

const isMissing = (error: unknown) => (error as { code?: unknown } | undefined)?.code === 'ENOENT'

const lacking = ({ sha256 }: Pick<Pin, 'sha256'>, { directory }: Pick<PrepareOptions, 'directory'>) =>
  refused(
    `There is no file ${sha256} in ${directory} on this machine. Add the plugin here with mayfly plugin add.`,
  )

async function copyHashed(source: FileHandle, target: FileHandle): Promise<{ hash: string; bytes: number }> {
  const hash = createHash('sha256')
  const chunk = Buffer.alloc(CHUNK)
  let bytes = 0
  for (;;) {
    const { bytesRead } = await source.read(chunk, 0, CHUNK, bytes)
    if (bytesRead === 0) return { hash: hash.digest('hex'), bytes }
    bytes += bytesRead
    // It may grow while it is read.
    if (bytes > MAX_ARTEFACT_BYTES) throw refused('The file of the plugin is too large.')
    const part = chunk.subarray(0, bytesRead)
    hash.update(part)
    await target.write(part)
  }
}

/** A package, or one module. Returns the module to start. */
async function unpack(artefact: string, folder: string): Promise<string> {
  const bytes = await readFile(artefact)
  await rm(artefact)
  if (!isArchive(bytes)) {
    const entry = join(folder, 'plugin.js')
    await writeFile(entry, bytes)
    // Node looks for the nearest one to learn what the module is, also in directories above, which others may write.
    await writeFile(join(folder, 'package.json'), '{}\n')
    return entry
  }
  const files = packageRoot(await readTarball(bytes, MAX_UNPACKED_BYTES))
  const entry = join(folder, entryOf(files))
  for (const file of files) {
    const path = join(folder, file.path)
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(path, file.bytes, { flag: 'wx', mode: 0o444 })
  }
  return entry
}

/** Nobody may change it, and everybody may start it: it holds nothing secret. */
async function openToReaders(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    await chmod(path, entry.isDirectory() ? 0o755 : 0o555)
  }
  await chmod(folder, 0o755)
}

/** Throws an `Error` with what to run if others than root and this user could change what lies in the directory. */
export async function requirePrivate(directory: string): Promise<void> {
  const facts = await stat(directory).catch((error: { code?: string }) => {
    throw new Error(`The directory ${directory} cannot be read (${error.code}).`, { cause: error })
  })
  const wrong = fault(directory, facts, process.geteuid?.() ?? facts.uid)
  if (wrong !== undefined) throw new Error(wrong)
}

function fault(directory: string, facts: Stats, own: number): string | undefined {
  const { mode, uid } = facts
  if (!facts.isDirectory()) return `${directory} is no directory.`
  if (uid !== own && uid !== 0)
    return `${directory} belongs to another user (${uid}), who could change the plugins in it. Run: chown ${own} ${directory}`
  if ((mode & 0o022) !== 0)
    return `Others can write to ${directory}, and so change the plugins in it. Run: chmod go-w ${directory}`
  return undefined
}

const refused = (message: string, cause?: unknown) =>
  misconfigured(message, cause === undefined ? {} : { cause })

/** The hash of a file of at most `MAX_ARTEFACT_BYTES`. */
export const sha256Of = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** An artefact in its place, which nothing refers to yet. */
export interface Staged {
  readonly sha256: string
  /** To be called once it is pinned, or refused. */
  release(): Promise<void>
}

/**
 * Puts an artefact into the directory under its hash, complete before its name appears. A file of that name with other bytes is
 * replaced. `directory` is made if its parent is there. Until it is released, a draft beside it names it, by which `removeStaged`
 * finds it if this process is killed.
 */
export async function stageArtefact(directory: string, bytes: Uint8Array): Promise<Staged> {
  await mkdir(directory, { mode: 0o700 }).catch((error: { code?: string }) => {
    if (error.code !== 'EEXIST') throw error
  })
  await requirePrivate(directory)
  const sha256 = sha256Of(bytes)
  const draft = await mkdtemp(join(directory, `draft-${process.pid}-`))
  const release = () => rm(draft, { recursive: true, force: true })
  try {
    const handle = await open(join(draft, 'artefact'), 'wx', 0o600)
    try {
      await handle.writeFile(bytes)
      // A directory of root that everybody may enter is read by a server without its rights.
      const { mode } = await stat(directory)
      await handle.chmod((mode & 0o005) === 0o005 ? 0o555 : 0o500)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await writeFile(join(draft, sha256), '')
    await rename(join(draft, 'artefact'), join(directory, sha256))
    return { sha256, release }
  } catch (error) {
    await release()
    throw error
  }
}

/** The same, without a draft. */
export async function placeArtefact(directory: string, bytes: Uint8Array): Promise<string> {
  const { sha256, release } = await stageArtefact(directory, bytes)
  await release()
  return sha256
}

/** Removes what commands left that were killed: their drafts, and what these name unless it is pinned. */
export async function removeStaged(directory: string, pinned: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(directory)) {
    const pid = Number(/^draft-(\d+)-/.exec(name)?.[1] ?? Number.NaN)
    const draft = join(directory, name)
    if (Number.isNaN(pid) || !(await isAbandoned(draft, pid, 'directory'))) continue
    for (const placed of await readdir(draft))
      if (!pinned.has(placed)) await discardArtefact(directory, placed)
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Removes an artefact that nothing refers to any more. */
export async function discardArtefact(directory: string, sha256: string): Promise<void> {
  if (new RegExp(SHA256_PATTERN).test(sha256)) await rm(join(directory, sha256), { force: true })
}
