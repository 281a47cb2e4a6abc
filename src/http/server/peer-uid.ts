import { readFile } from 'node:fs/promises'
import { isIPv4 } from 'node:net'
import { endianness } from 'node:os'

/** The two ends of a TCP connection, as `node:net` names them on our socket. */
export interface Ends {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

const TABLES = ['/proc/net/tcp', '/proc/net/tcp6'] as const
/** TCP_ESTABLISHED of include/net/tcp_states.h. */
const ESTABLISHED = '01'

/**
 * The uid of the process at the other end of a loopback TCP connection, from the kernel's socket tables. Undefined if
 * the socket is gone or the answer is not certain. Linux only.
 */
export async function readPeerUid(socket: Ends): Promise<number | undefined> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, 'latin1').catch(() => '')))
  return findPeerUid(socket, tables)
}

/** As `readPeerUid`, on the texts of the tables. */
export function findPeerUid(socket: Ends, tables: readonly string[]): number | undefined {
  const peers = endpoints(socket.remoteAddress, socket.remotePort)
  const ours = endpoints(socket.localAddress, socket.localPort)
  const found = tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, remote]) => peers.includes(local ?? '') && ours.includes(remote ?? ''))
  if (found.length !== 1) return undefined
  const [, , , state, , , , uid, , inode] = found[0] ?? []
  // The kernel shows a closed end with uid 0 and inode 0 until the connection is gone: a client that sends a request
  // and closes at once would pass for root.
  if (state !== ESTABLISHED || inode === undefined || !/^[1-9]\d*$/.test(inode)) return undefined
  return uid !== undefined && /^\d{1,10}$/.test(uid) ? Number(uid) : undefined
}

/** The forms of an end in the tables: IPv4 sockets are in one table, IPv6 sockets that speak IPv4 in the other. */
function endpoints(address: string | undefined, port: number | undefined): string[] {
  if (address === undefined || port === undefined) return []
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  const v4 = mapped ?? (isIPv4(address) ? address : undefined)
  if (v4 !== undefined && isIPv4(v4)) {
    const word = hexWord(v4.split('.').map(Number))
    return [word + suffix, '0'.repeat(16) + hexWord([0, 0, 255, 255]) + word + suffix]
  }
  if (address !== '::1') return []
  return ['0'.repeat(24) + hexWord([0, 0, 0, 1]) + suffix]
}

/** The kernel prints each 32-bit word of an address as a number of the machine's byte order. */
function hexWord(bytes: readonly number[]): string {
  const ordered = endianness() === 'LE' ? bytes.toReversed() : bytes
  return ordered.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join('')
}
