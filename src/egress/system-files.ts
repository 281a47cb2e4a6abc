import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { ReadTable } from '../domain/network/socket-owner.ts'
import { unmappedUid } from '../domain/network/socket-table.ts'

/** The text of a file of the system, or an empty one. */
export function readText(path: string): Promise<string> {
  return readFile(path, 'latin1').catch(() => '')
}

/**
 * The same, where many wait for one file: a reading serves all who asked before it began. What began while it was under way may be
 * missing in it, so who asks then gets the next one. The kernel gives the table of sockets in pieces of 4 KB, and each is a turn of
 * the event loop: beside busy streams, hundreds of connections that read it each for itself wait for minutes.
 */
export function shareReadings(read: ReadTable): ReadTable {
  const underWay = new Map<string, Promise<void>>()
  const next = new Map<string, Promise<string>>()
  const begin = async (path: string): Promise<string> => {
    await underWay.get(path)
    next.delete(path)
    const reading = read(path)
    underWay.set(path, reading.then(ignore, ignore))
    return reading
  }
  return (path) => {
    const reading = next.get(path) ?? begin(path)
    next.set(path, reading)
    return reading
  }
}

const ignore = () => {}

/** Of the kernel: who owns which socket. */
export const readTable: ReadTable = shareReadings(readText)

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
