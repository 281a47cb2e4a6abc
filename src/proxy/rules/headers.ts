import { authorityText, readAuthority } from '../../domain/network/authority.ts'
import type { Asked, Header, Upgrade } from './asked.ts'
import type { Reason } from './refusals.ts'

/** The headers of a request, checked, with what the rules must know of them. */
export interface Read {
  /** In lower case, in order. */
  readonly names: readonly string[]
  readonly upgrade: Upgrade | null
  /** Names of headers that the lines of `Connection` name. */
  readonly dropped: ReadonlySet<string>
  /** Undefined: the length is not known. */
  readonly contentLength: number | undefined
  readonly hasBody: boolean
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const NOT_IN_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/
/** Headers that decide how a message is read. No line of `Connection` may take them away, and no other name may look like theirs. */
const CRITICAL = new Set([
  ...[
    'host',
    'content-length',
    'transfer-encoding',
    'authorization',
    'cookie',
    'content-type',
    'content-encoding',
  ],
  ...['expect', 'sec-websocket-key', 'sec-websocket-version', 'sec-websocket-protocol'],
])
/** Those whose values are read here. */
const FRAMING = new Set(['content-length', 'transfer-encoding', 'connection', 'upgrade'])
/** With them an upstream reads another method or path than the one that was judged. */
const OVERRIDES = new Set([
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-method', 'x-original-url'],
  ...[
    'x-original-uri',
    'x-rewrite-url',
    'x-override-url',
    'x-original-path',
    'x-accel-redirect',
    'x-sendfile',
  ],
])
const NOT_FORWARDED = new Set([
  ...['connection', 'keep-alive', 'te', 'transfer-encoding', 'upgrade', 'http2-settings', 'host'],
  ...['sec-websocket-extensions', 'forwarded', 'x-real-ip', 'x-host', 'true-client-ip', 'x-client-ip', 'via'],
])
const NOT_FORWARDED_PREFIXES = /^(?:proxy-|x-mayfly-|x-forwarded-)/

/** Some servers read `_` as `-`. */
const likeHeader = (name: string) => (name.includes('_') ? name.replaceAll('_', '-') : name)

export function readHeaders({ headers, http2, method }: Asked): Read | Reason {
  const names: string[] = []
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    names.push(lower)
    if (!TOKEN.test(name) || NOT_IN_VALUE.test(value)) return 'bad_framing'
    const like = likeHeader(lower)
    if (like !== lower && CRITICAL.has(like)) return 'bad_framing'
    if (!FRAMING.has(lower)) continue
    const before = lines.get(lower)
    if (before === undefined) lines.set(lower, [value])
    else before.push(value)
  }
  const body = readFraming(lines)
  if (body === null) return 'bad_framing'
  const options = tokensOf(lines.get('connection') ?? [])
  if (options === null || (http2 !== undefined && options.length > 0)) return 'bad_framing'
  if (options.some((option) => CRITICAL.has(option) && option !== 'transfer-encoding')) return 'bad_framing'
  const upgrade = http2 === undefined && options.includes('upgrade') ? readUpgrade(lines, method) : null
  // What follows the head of an upgrade is read as another protocol by one side, and as a body by the other.
  if (upgrade === 'websocket' && body.hasBody) return 'bad_framing'
  return { names, upgrade, dropped: new Set(options), ...body }
}

function readFraming(lines: ReadonlyMap<string, readonly string[]>) {
  const lengths = lines.get('content-length') ?? []
  const encodings = lines.get('transfer-encoding') ?? []
  if (lengths.length + encodings.length > 1) return null
  const [length] = lengths
  const [encoding] = encodings
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return null
  if (length !== undefined && !/^\d{1,15}$/.test(length)) return null
  const contentLength = length === undefined ? undefined : Number(length)
  return { contentLength, hasBody: encoding !== undefined || (contentLength ?? 0) > 0 }
}

function tokensOf(lines: readonly string[]): string[] | null {
  const tokens: string[] = []
  for (const line of lines) {
    for (const part of line.split(',')) {
      const token = part.trim().toLowerCase()
      if (token === '') continue
      if (!TOKEN.test(token)) return null
      tokens.push(token)
    }
  }
  return tokens
}

function readUpgrade(lines: ReadonlyMap<string, readonly string[]>, method: string): Upgrade | null {
  const values = lines.get('upgrade') ?? []
  const name = values.length === 1 ? values[0]?.trim().toLowerCase() : undefined
  if (name === 'websocket') return method === 'GET' ? name : null
  return name === 'spdy/3.1' ? name : null
}

/** Whether a header asks the upstream to read another request than the one that is judged. */
export function overridesRequest({ names }: Read): boolean {
  return names.some((name) => OVERRIDES.has(likeHeader(name)))
}

/** Vault answers with a token, and whoever has that gets the reply, unmasked (Vault, "Response wrapping"). */
export function wrapsReply({ names }: Read): boolean {
  return names.some((name) => likeHeader(name) === 'x-vault-wrap-ttl')
}

/** A base URL has one list as long as it is open. */
const canonicalOf = new WeakMap<readonly string[], readonly string[]>()

/** The authorities that the client may name, canonical. */
export function expectedAuthorities({ authority, listener }: Asked): readonly string[] {
  if (listener === undefined) return [authority]
  const known = canonicalOf.get(listener)
  if (known !== undefined) return known
  const canonical = listener.map((one) => {
    const read = readAuthority(one, 'http')
    return read === undefined ? one : authorityText(read)
  })
  canonicalOf.set(listener, canonical)
  return canonical
}

/** `Host` once, and `:authority` if there is one, must name where the request goes. */
export function hostFault(asked: Asked, { names }: Read, expected: readonly string[]): Reason | undefined {
  const hosts = asked.headers.filter((_, index) => names[index] === 'host').map(([, value]) => value)
  if (hosts.length > 1 || (asked.http2 === undefined && hosts.length === 0)) return 'bad_host'
  if (asked.http2?.authority !== undefined) hosts.push(asked.http2.authority)
  if (hosts.length === 0) return 'bad_host'
  // At a base URL the client speaks plain HTTP to the listener, whatever its upstream speaks.
  const scheme = asked.listener === undefined ? asked.scheme : 'http'
  for (const host of hosts) {
    // Nearly always it is in its one form already.
    if (expected.includes(`${host}:${scheme === 'https' ? 443 : 80}`) || host === expected[0]) continue
    const read = readAuthority(host, scheme)
    if (read === undefined) return 'bad_host'
    if (!expected.includes(authorityText(read))) return 'wrong_host'
  }
  return undefined
}

export interface Forwarding {
  /** Value of `Host`. */
  readonly host: string
  /** A reply with a secret must be readable for the mask. */
  readonly masked: boolean
  /** New values, by the index of the header. */
  readonly values?: ReadonlyMap<number, string>
  readonly contentLength?: number
}

/** The headers as they are sent. */
export function forwardedHeaders(asked: Asked, read: Read, forwarding: Forwarding): Header[] {
  const { host, masked, values, contentLength } = forwarding
  const sent: Header[] = [['Host', host]]
  for (const [index, header] of asked.headers.entries()) {
    const name = read.names[index] ?? ''
    if (name === 'te' && header[1] === 'trailers' && asked.http2 !== undefined) sent.push(header)
    if (NOT_FORWARDED.has(name) || read.dropped.has(name) || NOT_FORWARDED_PREFIXES.test(name)) continue
    if (name === 'accept-encoding' && masked) continue
    if (name === 'content-length' && contentLength !== undefined) continue
    const value = values?.get(index)
    sent.push(value === undefined ? header : [header[0], value])
  }
  if (masked) sent.push(['Accept-Encoding', 'identity'])
  if (contentLength !== undefined) sent.push(['Content-Length', String(contentLength)])
  if (read.upgrade !== null) sent.push(['Connection', 'Upgrade'], ['Upgrade', upgradeName(read.upgrade)])
  return sent
}

const upgradeName = (upgrade: Upgrade) => (upgrade === 'spdy/3.1' ? 'SPDY/3.1' : upgrade)
