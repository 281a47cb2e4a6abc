import type { Socket } from 'node:net'
import { readExactly } from '../read-exactly.ts'
import { badStartup, databaseNotPermitted, Refusal } from '../refusal.ts'
import { int32, message, text, untyped } from './messages.ts'

/** What a connection begins with (PostgreSQL 18, 54.7 "Message Formats"). */
export type Asked =
  | { readonly kind: 'cancel'; readonly key: string }
  | { readonly kind: 'startup'; readonly minor: number; readonly parameters: ReadonlyMap<string, string> }

/** As the server: MAX_STARTUP_PACKET_LENGTH in pqcomm.h. */
const MAX_STARTUP = 10_000
const MAX_PARAMETERS = 100
const CANCEL = (1234 << 16) | 5678
const SSL = (1234 << 16) | 5679
const GSS = (1234 << 16) | 5680
const MAJOR = 3
const NO = Buffer.from('N')

/** Answers that there is no encryption, as often as a client may ask. Throws `Refusal`. */
export async function readAsked(socket: Socket, signal: AbortSignal): Promise<Asked> {
  const refused = new Set<number>()
  for (;;) {
    const length = (await readExactly(socket, 4, signal)).readUInt32BE()
    if (length < 8 || length > MAX_STARTUP) throw badStartup('the first packet has a wrong length')
    const packet = await readExactly(socket, length - 4, signal)
    const code = packet.readUInt32BE()
    if (code !== SSL && code !== GSS) return parseAsked(code, packet.subarray(4))
    if (packet.length !== 4 || refused.has(code)) throw badStartup('it asks for encryption twice')
    refused.add(code)
    socket.write(NO)
  }
}

function parseAsked(code: number, rest: Buffer): Asked {
  if (code === CANCEL) {
    if (rest.length !== 8) throw badStartup('a request to cancel has a wrong length')
    return { kind: 'cancel', key: rest.toString('hex') }
  }
  if (code >>> 16 !== MAJOR)
    throw badStartup(`it speaks version ${code >>> 16}.${code & 0xffff} of the protocol`)
  return { kind: 'startup', minor: code & 0xffff, parameters: parseParameters(rest) }
}

/** Pairs of texts that each end with a zero byte, and one more of those at the end. */
function parseParameters(bytes: Buffer): ReadonlyMap<string, string> {
  if (bytes.at(-1) !== 0) throw badStartup('its parameters do not end')
  const texts = new TextDecoder('utf-8', { fatal: true })
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0, at)
    // An empty name ends them.
    if (end === at && parts.length % 2 === 0) {
      if (end !== bytes.length - 1) throw badStartup('something follows its parameters')
      return pairsOf(parts)
    }
    try {
      parts.push(texts.decode(bytes.subarray(at, end)))
    } catch {
      throw badStartup('a parameter is not UTF-8')
    }
    if (parts.length > 2 * MAX_PARAMETERS) throw badStartup('it has too many parameters')
    at = end + 1
  }
  throw badStartup('its parameters do not end')
}

function pairsOf(parts: readonly string[]): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>()
  for (let at = 0; at < parts.length; at += 2) {
    const name = parts[at] ?? ''
    if (pairs.has(name)) throw badStartup('it names a parameter twice')
    pairs.set(name, parts[at + 1] ?? '')
  }
  return pairs
}

/** Protocol extensions, of which the proxy has none. */
const isExtension = (name: string) => name.startsWith('_pq_.')

/** What tells the client that it gets version 3.0 without extensions; nothing where it asked for no more. */
export function negotiation({ minor, parameters }: Asked & { kind: 'startup' }): Buffer {
  const unknown = [...parameters.keys()].filter(isExtension)
  if (minor === 0 && unknown.length === 0) return Buffer.alloc(0)
  return message('v', int32(MAJOR << 16), int32(unknown.length), ...unknown.map(text))
}

export interface Wanted {
  readonly user: string
  readonly database: string
  readonly parameters: ReadonlyMap<string, string>
}

/** What the proxy asks of the server in the place of the child. Throws `Refusal`. */
export function decideStartup(
  parameters: ReadonlyMap<string, string>,
  open: {
    readonly user: string
    readonly database: string
    readonly databases?: readonly string[] | undefined
  },
): Wanted {
  const replication = parameters.get('replication') ?? 'false'
  if (!/^(false|off|no|0)$/i.test(replication)) {
    throw new Refusal(
      'replication_not_permitted',
      'The proxy opens no connections for replication.',
      'Use a connection without the parameter "replication".',
    )
  }
  const passed = [...parameters].filter(([name]) => !OURS.has(name) && !isExtension(name))
  return { user: open.user, database: databaseOf(parameters, open), parameters: new Map(passed) }
}

const OURS = new Set(['user', 'database', 'replication'])

function databaseOf(
  parameters: ReadonlyMap<string, string>,
  { user, database, databases }: Parameters<typeof decideStartup>[1],
): string {
  const asked = parameters.get('database') ?? ''
  // A client that was told no database asks for one of its user's name.
  const isDefault =
    asked === '' || asked === user || (databases !== undefined && asked === parameters.get('user'))
  if (databases?.includes(asked) === true) return asked
  if (isDefault) return database
  if (databases === undefined || asked === database) return asked
  throw databaseNotPermitted(databases)
}

/** The packet for the server. */
export function startupPacket({ user, database, parameters }: Wanted): Buffer {
  const all = [['user', user], ['database', database], ...parameters].flat()
  return untyped(int32(MAJOR << 16), ...all.map(text), Buffer.alloc(1))
}

export const sslRequest = () => untyped(int32(SSL))
export const cancelRequest = (key: Buffer) => untyped(int32(CANCEL), key)
