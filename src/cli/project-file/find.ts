import { stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { shellWord } from '../../domain/formats/shell-word.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import type { Context } from '../frame/verb.ts'
import { isPresent } from '../session/private-file.ts'
import { holdsCredentials, OLD_PROJECT_FILE, PROJECT_FILE } from './open.ts'

/**
 * The project file of this directory or, inside a repository, of the nearest directory above it that has one, up to the
 * root of the repository; relative to this directory. A `mayfly.yaml` counts if it has `credentials:`. Undefined if there is none.
 */
export async function findProjectFile({ cwd }: Pick<Surroundings, 'cwd'>): Promise<string | undefined> {
  for (const directory of await directoriesOf(cwd)) {
    const path = join(directory, PROJECT_FILE)
    if (await isPresent(path)) return relative(cwd, path)
    const old = join(directory, OLD_PROJECT_FILE)
    if (await holdsCredentials({ cwd }, old)) return relative(cwd, old)
  }
  return undefined
}

/** Warns where the file was found under its old name. */
export function noteOldName({ out }: Pick<Context, 'out'>, found: string): void {
  if (basename(found) !== OLD_PROJECT_FILE) return
  const renamed = join(dirname(found), PROJECT_FILE)
  out.note(
    `Warning: the project file is now called ${PROJECT_FILE}. Run: mv ${shellWord(found)} ${shellWord(renamed)}`,
  )
}

/** This directory and, if it is inside a repository of this user, those up to its root. */
async function directoriesOf(cwd: string): Promise<readonly string[]> {
  const directories: string[] = []
  for (let directory = cwd; await isPrivate(directory); directory = dirname(directory)) {
    directories.push(directory)
    // A directory; in a worktree or a submodule a file.
    if (await isPresent(join(directory, '.git'))) return directories
    if (dirname(directory) === directory) break
  }
  return [cwd]
}

/** Whether this user alone decides what the directory holds. Others could put a file, or a repository, into any other. */
async function isPrivate(directory: string): Promise<boolean> {
  const own = process.getuid?.()
  if (own === undefined) return true
  return stat(directory).then(
    ({ uid, mode }) => uid === own && (mode & 0o002) === 0,
    () => false,
  )
}
