import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Whether a stamp was written after the last change of all these files and directories. */
export function isNewerThan(stamp: string, sources: readonly string[]): boolean {
  return existsSync(stamp) && statSync(stamp).mtimeMs > Math.max(...sources.map(newest))
}

function newest(path: string): number {
  const own = statSync(path).mtimeMs
  if (!statSync(path).isDirectory()) return own
  return Math.max(own, ...readdirSync(path).map((name) => newest(join(path, name))))
}
