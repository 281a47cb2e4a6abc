import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type Ends, peerUid, unmappedUid } from '../../domain/socket-table.ts'

/** Returns the text of a file below `/proc`, or an empty one. */
export type ReadTable = (path: string) => Promise<string>

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
    // Sockets that come and go move rows while the kernel lists them, which can hide one that has been there all along.
    const uid = (await findOnce(socket, read)) ?? (await findOnce(socket, read))
    if (uid === undefined || uid === unmapped) return undefined
    known.set(socket, uid)
    return uid
  }
  return (socket) => known.get(socket) ?? find(socket)
}

async function findOnce(socket: Ends, read: ReadTable): Promise<number | undefined> {
  const inIPv4 = socket.remoteAddress === '::1' ? undefined : peerUid(socket, await read('/proc/net/tcp'))
  return inIPv4 ?? peerUid(socket, await read('/proc/net/tcp6'))
}

const readTable: ReadTable = (path) => readFile(path, 'latin1').catch(() => '')

function readNow(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
