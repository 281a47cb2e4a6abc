import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { ReadTable } from '../domain/network/socket-owner.ts'
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

/**
 * Callers who ask while a table is being read share the next reading. A reading costs the kernel some ten milliseconds of CPU, and
 * clients open connections by the dozen. One that began before a caller asked does not serve it, as its connection may be missing.
 */
export function sharedReads(read: ReadTable): ReadTable {
  const last = new Map<string, Reading>()
  return (path) => {
    const before = last.get(path)
    if (before?.hasBegun === false) return before.text
    const reading: Reading = {
      hasBegun: before === undefined,
      text: before === undefined ? read(path) : before.over.then(() => begin(reading, path)),
      over: Promise.resolve(),
    }
    reading.over = reading.text.then(
      () => forget(reading, path),
      () => forget(reading, path),
    )
    last.set(path, reading)
    return reading.text
  }

  function begin(reading: Reading, path: string): Promise<string> {
    reading.hasBegun = true
    return read(path)
  }

  function forget(reading: Reading, path: string): void {
    if (last.get(path) === reading) last.delete(path)
  }
}

interface Reading {
  hasBegun: boolean
  readonly text: Promise<string>
  /** Settles with it, and never rejects. */
  over: Promise<void>
}

/** Whoever in this process asks who is at the other end of a connection shares these readings. */
export const readTogether = sharedReads(readText)
