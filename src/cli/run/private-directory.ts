import { mkdir, mkdtemp, rename, rm, stat, statfs, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Surroundings } from '../frame/surroundings.ts'

const TMPFS = 0x01021994
const RAMFS = 0x858458f6
const PREFIX = 'mayfly-run-'

export interface NamedText {
  readonly name: string
  readonly text: string
}

/** A directory of 0700 with files of 0600, in memory where there is such a place. */
export interface PrivateDirectory {
  readonly path: string
  /** All files of one credential in the place of those before, at once. Returns the directory that they are in. */
  replace(set: string, files: readonly NamedText[]): Promise<string>
  remove(): Promise<void>
}

export async function openPrivateDirectory(where: Pick<Surroundings, 'env'>): Promise<PrivateDirectory> {
  const path = await makeDirectory(where)
  const versions = new Map<string, number>()
  return {
    path,
    replace: async (set, files) => {
      const before = versions.get(set) ?? 0
      const version = before + 1
      const directory = `${set}.${version}`
      try {
        await mkdir(join(path, directory), { mode: 0o700 })
        for (const { name, text } of files)
          await writeFile(join(path, directory, name), text, { mode: 0o600, flag: 'wx' })
        // A link that is renamed turns to the new files at once: nobody reads a half-written one.
        await symlink(directory, join(path, `${directory}.new`))
        await rename(join(path, `${directory}.new`), join(path, set))
      } catch (error) {
        // What is left of it would stand in the way of the next try.
        for (const left of [directory, `${directory}.new`])
          await rm(join(path, left), { recursive: true, force: true }).catch(() => {})
        throw error
      }
      versions.set(set, version)
      if (before > 0) await rm(join(path, `${set}.${before}`), { recursive: true, force: true })
      return join(path, set)
    },
    remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  }
}

/** In the first of the places that is in memory and takes it; else in the usual one for temporary files. */
async function makeDirectory({ env }: Pick<Surroundings, 'env'>): Promise<string> {
  for (const place of [env['XDG_RUNTIME_DIR'], '/dev/shm']) {
    if (!place?.startsWith('/') || !(await isInMemory(place))) continue
    const made = await mkdtemp(join(place, PREFIX)).catch(() => undefined)
    if (made !== undefined) return made
  }
  const usual = env['TMPDIR']
  return mkdtemp(join(usual?.startsWith('/') ? usual : tmpdir(), PREFIX))
}

async function isInMemory(path: string): Promise<boolean> {
  try {
    const [{ type }, facts] = await Promise.all([statfs(path), stat(path)])
    const own = process.getuid?.()
    // Of ours, or one where only the owner of an entry may take it away (sticky).
    const isSafe = facts.uid === own || (facts.mode & 0o1000) !== 0
    return isSafe && (type === TMPFS || type === RAMFS)
  } catch {
    return false
  }
}
