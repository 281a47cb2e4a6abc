import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { unmappedUid } from '../domain/network/socket-table.ts'

/** The text of a file of the system, or an empty one. */
export function readText(path: string): Promise<string> {
  return readFile(path, 'latin1').catch(() => '')
}

/** The number that stands for every user without one in our user namespace. */
export function ownUnmappedUid(): number | undefined {
  return unmappedUid(readNow('/proc/self/uid_map'), readNow('/proc/sys/kernel/overflowuid'))
}

function readNow(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
