import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { findPeerUid, type ReadTable } from '../domain/network/socket-owner.ts'
import { type Ends, unmappedUid } from '../domain/network/socket-table.ts'

/**
 * Looks up the uid of the process at the other end of a loopback TCP connection. Undefined if the socket is gone, the
 * answer is not certain, or the user has no number in our user namespace. Linux only.
 */
export function createPeerUids(
  read: ReadTable = readTable,
): (socket: Ends) => number | Promise<number | undefined> {
  const unmapped = unmappedUid(readNow('/proc/self/uid_map'), readNow('/proc/sys/kernel/overflowuid'))
  // The uid of a socket is that of its creator and never changes, and a look-up takes longer the more sockets there are.
  const known = new WeakMap<Ends, number>()
  const find = async (socket: Ends) => {
    const uid = await findPeerUid(socket, read)
    if (uid === undefined || uid === unmapped) return undefined
    known.set(socket, uid)
    return uid
  }
  return (socket) => known.get(socket) ?? find(socket)
}

const readTable: ReadTable = (path) => readFile(path, 'latin1').catch(() => '')

function readNow(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
