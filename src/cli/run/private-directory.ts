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

/** A directory of mode 0700 with files of mode 0600, in memory where the system has such a place. */
export interface PrivateDirectory {
  readonly path: string
  /** Replaces all files of one credential at once. Returns the directory that holds them. */
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
        // Renaming the link switches all files at once, so no reader sees a half-written one.
        await symlink(directory, join(path, `${directory}.new`))
        await rename(join(path, `${directory}.new`), join(path, set))
      } catch (error) {
        // Leftovers would block the next attempt.
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

/** In the first in-memory place that accepts it, otherwise in the directory for temporary files. */
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
    // Owned by us, or sticky: only the owner of an entry may remove it.
    const isSafe = facts.uid === own || (facts.mode & 0o1000) !== 0
    return isSafe && (type === TMPFS || type === RAMFS)
  } catch {
    return false
  }
}
