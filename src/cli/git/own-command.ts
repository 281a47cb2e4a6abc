import { realpathSync, statSync } from 'node:fs'
import { delimiter, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Surroundings } from '../frame/surroundings.ts'

/** How other programs call this command: by name if the PATH leads here, otherwise by node and file. */
export function ownCommand({ env }: Pick<Surroundings, 'env'>): readonly string[] {
  const own = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url))
  const candidates = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, 'mayfly'))
  // Another program of this name earlier in the PATH would run instead of ours.
  const first = candidates.find(isFile)
  return first !== undefined && realpathSync(first) === realpathSync(own)
    ? ['mayfly']
    : [process.execPath, own]
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
