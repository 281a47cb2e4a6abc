import { type Ends, exactListenerUids, listenerUids, peerUid } from './socket-table.ts'

/** Asks the kernel's tables who owns a TCP socket of this machine. Linux only. */

/** Returns the text of a file below `/proc`, or an empty one. */
export type ReadTable = (path: string) => Promise<string>

/** The uid of the other end of a loopback connection, once a process has it. Where one surely has, more tries are worth it. */
export async function findPeerUid(socket: Ends, read: ReadTable, most = 2): Promise<number | undefined> {
  // Sockets that come and go move rows while the kernel lists them, which can hide one that has been there all along.
  for (let tries = 1; ; tries += 1) {
    const uid = await findPeerOnce(socket, read)
    if (uid !== undefined || tries === most) return uid
  }
}

async function findPeerOnce(socket: Ends, read: ReadTable): Promise<number | undefined> {
  const inIPv4 = socket.remoteAddress === '::1' ? undefined : peerUid(socket, await read('/proc/net/tcp'))
  return inIPv4 ?? peerUid(socket, await read('/proc/net/tcp6'))
}

/** The uids that listen where a connection to this loopback address arrives. An element is undefined if its row is not readable. */
export async function findListenerUids(
  address: string,
  port: number,
  read: ReadTable,
): Promise<readonly (number | undefined)[]> {
  const first = await findListenersOnce(address, port, read)
  return first.length > 0 ? first : findListenersOnce(address, port, read)
}

async function findListenersOnce(address: string, port: number, read: ReadTable) {
  const table = await read('/proc/net/tcp')
  const exact = exactListenerUids(address, port, table)
  // Most often. Reading a table takes longer than the rest of the connection.
  if (exact.length > 0) return exact
  return listenerUids(address, port, `${table}\n${await read('/proc/net/tcp6')}`)
}
