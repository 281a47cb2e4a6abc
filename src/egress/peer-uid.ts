import { findPeerUid, type ReadTable } from '../domain/network/socket-owner.ts'
import type { Ends } from '../domain/network/socket-table.ts'
import { ownUnmappedUid, readTogether } from './system-files.ts'

/** On a busy machine two are not enough. */
const MOST_TRIES = 5

/**
 * Looks up the uid of the process at the other end of a loopback TCP connection. Undefined if the socket is gone, the
 * answer is not certain, or the user has no number in our user namespace. Linux only.
 */
export function createPeerUids(
  read: ReadTable = readTogether,
): (socket: Ends) => number | Promise<number | undefined> {
  const unmapped = ownUnmappedUid()
  // The uid of a socket is that of its creator and never changes, and a look-up takes longer the more sockets there are.
  const known = new WeakMap<Ends, number>()
  const find = async (socket: Ends) => {
    const uid = await findPeerUid(socket, read, MOST_TRIES)
    if (uid === undefined || uid === unmapped) return undefined
    known.set(socket, uid)
    return uid
  }
  return (socket) => known.get(socket) ?? find(socket)
}
