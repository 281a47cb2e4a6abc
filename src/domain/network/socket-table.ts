/** Reads the kernel's tables of TCP sockets, `/proc/net/tcp` and `/proc/net/tcp6`, from their text. Linux only. */

/** The two ends of a TCP connection, as `node:net` names them on a socket. */
export interface Ends {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

/** States of include/net/tcp_states.h. */
const ESTABLISHED = '01'
const LISTEN = '0A'
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1
const MAPPED = '0'.repeat(16) + hexWord([0, 0, 255, 255])
const LOOPBACK_V6 = '0'.repeat(24) + hexWord([0, 0, 0, 1])

/**
 * The uid that owns the other end of a loopback connection, in one table. Undefined if the table does not have it, or
 * the answer is not certain.
 */
export function peerUid(ends: Ends, table: string): number | undefined {
  const peers = endpoints(ends.remoteAddress, ends.remotePort)
  const ours = endpoints(ends.localAddress, ends.localPort)
  const [only, ...others] = peers.flatMap((peer, form) => rowsWith(`: ${peer} ${ours[form]} `, table))
  if (only === undefined || others.length > 0) return undefined
  // The kernel shows a closed end with uid 0 and inode 0 until the connection is gone: a client that sends a request
  // and closes at once would pass for root.
  return only.state === ESTABLISHED && /^[1-9]\d*$/.test(only.inode) ? only.uid : undefined
}

/**
 * The uids that listen where a connection to this loopback address arrives. `tables` is the text of both tables. An
 * element is undefined if the row is not readable.
 */
export function listenerUids(address: string, port: number, tables: string): (number | undefined)[] {
  const exact = exactListenerUids(address, port, tables)
  // The kernel prefers a listener on the address itself to one on all addresses.
  if (exact.length > 0) return exact
  const suffix = hexPort(port)
  const onAll = `${'0'.repeat(32)}${suffix}`
  return listening(address === '::1' ? [onAll] : [`00000000${suffix}`, onAll], tables)
}

/**
 * The uids that listen on this very address, in one table or both. If one table has any, the other table has none of
 * another user: the kernel lets only one user listen on an address and a port, in whatever form they are written.
 */
export function exactListenerUids(address: string, port: number, tables: string): (number | undefined)[] {
  return listening(endpoints(address, port), tables)
}

/** Whether somebody listens on this port at every address of the machine, so that other machines may connect. */
export function isOpenToAll(port: number, tables: string): boolean {
  const suffix = hexPort(port)
  return listening([`00000000${suffix}`, `${'0'.repeat(32)}${suffix}`], tables).length > 0
}

function listening(locals: readonly string[], tables: string): (number | undefined)[] {
  return locals
    .flatMap((local) => rowsWith(`: ${local} `, tables))
    .filter(({ state }) => state === LISTEN)
    .map(({ uid }) => uid)
}

/**
 * The uid that stands for every user without a number in this user namespace; undefined if all have one. `uidMap` and
 * `overflowUid` are the texts of `/proc/self/uid_map` and `/proc/sys/kernel/overflowuid`.
 */
export function unmappedUid(uidMap: string, overflowUid: string): number | undefined {
  const mapped = uidMap.split('\n').map((line) => Number(line.trim().split(/\s+/)[2] ?? 0))
  const total = mapped.reduce((sum, count) => sum + count, 0)
  return total === 0xff_ff_ff_ff ? undefined : Number(/^\d+/.exec(overflowUid)?.[0] ?? 65_534)
}

interface Row {
  readonly state: string
  readonly uid: number | undefined
  readonly inode: string
}

/** Searches the text: splitting a table of some thousand lines takes several milliseconds. */
function rowsWith(needle: string, table: string): Row[] {
  const rows: Row[] = []
  for (let at = table.indexOf(needle); at >= 0; at = table.indexOf(needle, at + 1)) {
    const end = table.indexOf('\n', at)
    const fields = table.slice(at + 2, end < 0 ? undefined : end).split(/\s+/)
    const [, , state = '', , , , uid = '', , inode = ''] = fields
    rows.push({ state, uid: /^\d{1,10}$/.test(uid) ? Number(uid) : undefined, inode })
  }
  return rows
}

/** The forms of an end: IPv4 sockets are in one table, IPv6 sockets that speak IPv4 in the other. */
function endpoints(address: string | undefined, port: number | undefined): string[] {
  if (address === undefined || port === undefined) return []
  const suffix = hexPort(port)
  if (address === '::1') return [LOOPBACK_V6 + suffix]
  const v4 = /^(?:::ffff:)?(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$/i.exec(address)?.[1]
  if (v4 === undefined) return []
  const word = hexWord(v4.split('.').map(Number))
  return [word + suffix, MAPPED + word + suffix]
}

const hexPort = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`

/** The kernel prints each 32-bit word of an address as a number of the machine's byte order. */
function hexWord(bytes: readonly number[]): string {
  const ordered = IS_LITTLE_ENDIAN ? bytes.toReversed() : bytes
  return ordered.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join('')
}
