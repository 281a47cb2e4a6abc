import type { Readable, Transform } from 'node:stream'
import type { Mask } from '../mask/mask.ts'
import { isText } from '../mask/text-types.ts'
import { decodersFor } from './decoders.ts'
import { Failure } from './failure.ts'
import type { Reply } from './upstream/outbound.ts'

/** What goes back of a reply. */
export interface Returned {
  readonly status: number
  readonly headers: readonly string[]
  readonly isOver: boolean
  readonly isMasked: boolean
  /** The body, decoded where it is masked. `onFault`: it cannot be. */
  open(onFault: (failure: Failure) => void): Readable
}

/** Headers of a connection (RFC 9110 §7.6.1); `Trailer` describes the message. */
const HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authentication-info'],
  ...['te', 'transfer-encoding', 'upgrade', 'http2-settings', 'x-mayfly-proxy'],
])
/** Statuses without a body, whatever their headers say (RFC 9112 §6.3). */
const BODILESS = new Set([204, 304])
/** Of the names that are looked at: `connection`, `content-type`, `content-encoding`. */
const LENGTHS = new Set([10, 12, 16])

export interface ReturnOptions {
  readonly method: string
  /** Undefined: nothing secret was sent. */
  readonly mask: Mask | undefined
  /** At a base URL: redirects within the origin lead back to the listener. */
  readonly location: { readonly from: string; readonly to: string } | undefined
}

/** Throws `Failure` for a body that must be masked and cannot be read. */
export function returnedOf(
  reply: Omit<Reply, 'trailers'>,
  { method, mask, location }: ReturnOptions,
): Returned {
  const { status, body } = reply
  const isOver = reply.isOver || method === 'HEAD' || BODILESS.has(status)
  const { names, encoding, type } = read(reply.headers)
  const isMasked = mask !== undefined && !isOver && isText(type)
  const decoders = isMasked && encoding !== '' ? decodersOf(encoding, status) : []
  const flat: string[] = []
  for (let at = 0; at + 1 < reply.headers.length; at += 2) {
    const name = reply.headers[at] ?? ''
    const value = reply.headers[at + 1] ?? ''
    const lower = name.toLowerCase()
    if (HOP.has(lower) || names?.has(lower)) continue
    if (decoders.length > 0 && (lower === 'content-length' || lower === 'content-encoding')) continue
    flat.push(name, lower === 'location' && location !== undefined ? moved(value, location) : value)
  }
  return {
    ...{ status, isOver, isMasked },
    headers: mask === undefined ? flat : mask.headers(flat),
    open: (onFault) => openBody(body, decoders, onFault),
  }
}

function openBody(
  body: Readable,
  decoders: readonly Transform[],
  onFault: (failure: Failure) => void,
): Readable {
  let opened = body
  for (const decoder of decoders) {
    decoder.on('error', (cause) => onFault(new Failure('broken', { cause })))
    opened = opened.pipe(decoder)
  }
  return opened
}

export function withoutHop(flat: readonly string[]): string[] {
  const { names } = read(flat)
  const kept: string[] = []
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const lower = (flat[at] ?? '').toLowerCase()
    if (!HOP.has(lower) && !names?.has(lower)) kept.push(flat[at] ?? '', flat[at + 1] ?? '')
  }
  return kept
}

/** The names that all `Connection` lines list, and how the body is encoded. */
function read(flat: readonly string[]) {
  let names: Set<string> | undefined
  let encoding = ''
  let type: string | undefined
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at] ?? ''
    if (!LENGTHS.has(name.length)) continue
    const lower = name.toLowerCase()
    const value = flat[at + 1] ?? ''
    if (lower === 'content-encoding') encoding += `${encoding === '' ? '' : ','}${value}`
    else if (lower === 'content-type') type = type === undefined || isText(value) ? value : type
    else if (lower === 'connection') {
      names ??= new Set()
      for (const one of value.split(',')) names.add(one.trim().toLowerCase())
    }
  }
  // A reply does not choose which of its own headers get lost.
  for (const one of ['content-length', 'content-type', 'content-encoding', 'set-cookie', 'location'])
    names?.delete(one)
  return { names, encoding, type }
}

function moved(location: string, { from, to }: { readonly from: string; readonly to: string }): string {
  const rest = location.slice(from.length)
  const isWithin =
    location.slice(0, from.length).toLowerCase() === from && (rest === '' || /^[/?#]/.test(rest))
  return isWithin ? `${to}${rest}` : location
}

/** In the order in which they are taken off. A part of an encoded body cannot be decoded, and nothing else may pass unread. */
function decodersOf(encoding: string, status: number): Transform[] {
  const decoders = decodersFor(encoding)
  if (decoders === null || (status === 206 && decoders.length > 0)) throw new Failure('broken')
  return decoders
}
