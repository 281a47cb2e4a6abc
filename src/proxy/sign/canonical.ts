import { createHash, createHmac } from 'node:crypto'
import { unescapePercent } from '../rules/target.ts'

/*
 * The parts of an AWS Signature Version 4 (IAM User Guide, "Create a signed AWS API request"). All texts are latin1: a character is
 * a byte of what is sent.
 */

export const ALGORITHM = 'AWS4-HMAC-SHA256'
export const EMPTY_HASH = hashOf('')
const SLASH = 0x2f

/** S3 signs the path as it is, once encoded. Every other service normalises it and encodes what was sent once more. */
const S3_SERVICES: ReadonlySet<string> = new Set(['s3', 's3-object-lambda', 's3-outposts', 's3express'])

export function isS3(service: string): boolean {
  return S3_SERVICES.has(service)
}

export interface ToCanonize {
  readonly method: string
  readonly path: string
  /** Without `?`. */
  readonly query: string
  readonly headers: readonly (readonly [string, string])[]
  /** In lower case, sorted. */
  readonly signedHeaders: readonly string[]
  readonly payloadHash: string
  readonly service: string
}

export function canonicalRequest({ service, ...request }: ToCanonize): string {
  return [
    request.method,
    canonicalPath(request.path, service),
    canonicalQuery(request.query),
    ...request.signedHeaders.map((name) => `${name}:${canonicalValue(request.headers, name)}`),
    '',
    request.signedHeaders.join(';'),
    request.payloadHash,
  ].join('\n')
}

function canonicalPath(path: string, service: string): string {
  if (isS3(service)) return encode(unescapePercent(path), true)
  return encode(withoutDots(path), true)
}

function withoutDots(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const isDirectory = kept.length > 0 && /(?:^|\/)\.{0,2}$/.test(path)
  return `/${kept.join('/')}${isDirectory ? '/' : ''}`
}

/** `+` is a space, as in a form: servers that parse the query read it so. */
function canonicalQuery(query: string): string {
  return readQuery(query)
    .map(([name, value]) => [encode(name), encode(value)] as const)
    .sort(([a, x], [b, y]) => compare(a, b) || compare(x, y))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** Decoded pairs, in order. */
export function readQuery(query: string): [name: string, value: string][] {
  return query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=')
      const [name, value] = at === -1 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)]
      return [unescapePercent(name.replaceAll('+', ' ')), unescapePercent(value.replaceAll('+', ' '))]
    })
}

function canonicalValue(headers: ToCanonize['headers'], name: string): string {
  return headers
    .filter(([one]) => one.toLowerCase() === name)
    .map(([, value]) =>
      value
        .split(/[ \t]+/)
        .filter((word) => word !== '')
        .join(' '),
    )
    .join(',')
}

/** Percent-encodes every byte but the unreserved ones (RFC 3986 §2.3). */
export function encode(text: string, keepsSlashes = false): string {
  if (/^[A-Za-z0-9_.~-]*$/.test(text)) return text
  return text.replace(/[^A-Za-z0-9_.~-]/g, (character) => {
    const byte = character.charCodeAt(0)
    if (keepsSlashes && byte === SLASH) return character
    return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  })
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

export interface Scope {
  /** `20261127T101500Z`. */
  readonly time: string
  readonly region: string
  readonly service: string
}

export function scopeText({ time, region, service }: Scope): string {
  return `${time.slice(0, 8)}/${region}/${service}/aws4_request`
}

export interface SigningKey {
  readonly scope: Scope
  /** In hex, of a text to sign. */
  sign(text: string): string
}

export function signingKey(secret: string, scope: Scope): SigningKey {
  const day = hmac(Buffer.from(`AWS4${secret}`, 'latin1'), scope.time.slice(0, 8))
  const key = hmac(hmac(hmac(day, scope.region), scope.service), 'aws4_request')
  return { scope, sign: (text) => hmac(key, text).toString('hex') }
}

export function signatureOf(key: SigningKey, canonical: string): string {
  return key.sign([ALGORITHM, key.scope.time, scopeText(key.scope), hashOf(canonical)].join('\n'))
}

export function hashOf(text: string | Buffer): string {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  return createHash('sha256').update(bytes).digest('hex')
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text, 'latin1').digest()
}
