import { findPeerUid, type ReadTable } from '../domain/network/socket-owner.ts'
import type { Ends } from '../domain/network/socket-table.ts'
import { ownUnmappedUid, readText } from './system-files.ts'

/** On a busy machine two are not enough. */
const MOST_TRIES = 5

/**
 * Looks up the uid of the process at the other end of a loopback TCP connection. Undefined if the socket is gone, the
 * answer is not certain, or the user has no number in our user namespace. Linux only.
 */
export function createPeerUids(
  read: ReadTable = readText,
): (socket: Ends) => number | Promise<number | undefined> {
  const unmapped = ownUnmappedUid()
  const shared = sharedReads(read)
  // The uid of a socket is that of its creator and never changes, and a look-up takes longer the more sockets there are.
  const known = new WeakMap<Ends, number>()
  const find = async (socket: Ends) => {
    const uid = await findPeerUid(socket, shared, MOST_TRIES)
    if (uid === undefined || uid === unmapped) return undefined
    known.set(socket, uid)
    return uid
  }
  return (socket) => known.get(socket) ?? find(socket)
}

/**
 * Everybody who asks while a table is read gets the next reading: the kernel takes some ten milliseconds of CPU for one, and clients
 * open connections by the dozen. No reading serves who asked after it began, as it may lack his connection.
 */
function sharedReads(read: ReadTable): ReadTable {
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
