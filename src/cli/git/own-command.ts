import { realpathSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installation } from '../../installation.ts'
import type { Surroundings } from '../frame/surroundings.ts'

/** How other programs call this command: by name if the PATH leads here, otherwise by its file. */
export function ownCommand({ env }: Pick<Surroundings, 'env'>): readonly string[] {
  const own = installation.command.at(-1) ?? ''
  const candidates = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, 'mayfly'))
  // Another program of this name earlier in the PATH would run instead of ours.
  const first = candidates.find(isFile)
  return first !== undefined && realpathSync(first) === realpathSync(own) ? ['mayfly'] : installation.command
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
