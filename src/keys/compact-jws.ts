import { isObject } from '../domain/formats/json.ts'
import { MAX_JWT_BYTES } from '../domain/limits.ts'
import { decodeBase64url } from './base64url.ts'

/** The last second of the year 9999; a later NumericDate is not plausible. */
const MAX_NUMERIC_DATE = 253_402_300_799

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
const HEADER_MEMBERS = new Set(['alg', 'kid', 'typ'])
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface JwsHeader {
  readonly alg: string
  readonly kid?: string
  readonly typ?: string
}

/**
 * Reads the header of a compact JWS before any library sees the token. Accepts only three canonical base64url parts of
 * at most 4096 bytes, and only the header members `alg`, `kid` and `typ`, all strings. This refuses tokens with their
 * own keys (`jwk`, `jku`, `x5c`, `x5u`) or extensions (`crit`, `b64`). Never throws.
 */
export function readStrictHeader(token: unknown): JwsHeader | undefined {
  if (typeof token !== 'string' || token.length > MAX_JWT_BYTES || !COMPACT.test(token)) return undefined
  const parts = token.split('.').map(decodeBase64url)
  const [head] = parts
  if (head === undefined || parts.includes(undefined)) return undefined
  const header = parseObject(head)
  if (header === undefined || typeof header['alg'] !== 'string') return undefined
  for (const [name, value] of Object.entries(header)) {
    if (!HEADER_MEMBERS.has(name) || typeof value !== 'string') return undefined
  }
  return header as unknown as JwsHeader
}

function parseObject(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A NumericDate (RFC 7519 §2) that is a whole number of seconds between 1970 and the year 9999. */
export function isNumericDate(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= MAX_NUMERIC_DATE
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0
}

export function isTextArray(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText)
}

/** `aud` (RFC 7519 §4.1.3): a string, or an array of strings only. */
export function isAudience(value: unknown): value is string | string[] {
  return isText(value) || (isTextArray(value) && value.length > 0)
}
