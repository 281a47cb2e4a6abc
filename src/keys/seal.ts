import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { decodeBase64url } from './base64url.ts'

export interface MasterKey {
  /** 1 to 2^31 - 1; the highest one seals, all of them open. */
  readonly version: number
  /** 32 bytes. */
  readonly key: Buffer
}

/** A sealed value cannot be opened. The message never contains data, sealed or open. */
export class SealError extends Error {
  override readonly name = 'SealError'
}

export interface Sealer {
  readonly newestVersion: number
  /** All versions of this sealer. */
  readonly versions: readonly number[]
  /** Seals under the newest key, bound to the place it is stored at. */
  seal(table: string, id: string, column: string, plaintext: string): string
  /** Throws `SealError` if the text was changed or moved, or its key version is unknown. */
  open(table: string, id: string, column: string, sealed: string): string
  /** Throws `SealError` if the text does not have the sealed form. */
  versionOf(sealed: string): number
  /** A value to store that names every key version and proves each key without revealing it. Deterministic. */
  keyCheck(): string
  /** True if at least one stored version is known here, and every known one matches. */
  matchesCheck(stored: string): boolean
  /** Whether the stored value names a version that this sealer lacks. */
  lacksSome(stored: string): boolean
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MAX_VERSION = 2 ** 31 - 1
const SEALED = /^s1\.([1-9][0-9]{0,9})\.([A-Za-z0-9_-]+)$/
const CHECK = /^c1\.([1-9][0-9]{0,9})\.([A-Za-z0-9_-]{43})$/

/**
 * Reads lines of `<version>:<key>`, the key as 64 hex or 43/44 base64 (or base64url) characters; one bare key
 * alone is version 1. Blank lines and `#` comments are skipped. Throws `Error` naming the line, never the key.
 */
export function parseMasterKeys(text: string): MasterKey[] {
  const keys: MasterKey[] = []
  let bare = false
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = raw.replace(/#.*$/, '').trim()
    if (line === '') continue
    const where = `master key file, line ${index + 1}`
    const colon = line.indexOf(':')
    if (colon === -1) bare = true
    const version = colon === -1 ? 1 : readVersion(line.slice(0, colon).trim(), where)
    keys.push({ version, key: readKey(line.slice(colon + 1).trim(), where) })
  }
  if (keys.length === 0)
    throw new Error('the master key file contains no key: write "1:" and 64 hex characters')
  if (bare && keys.length > 1) {
    throw new Error('the master key file contains several keys: each line needs a version, "<version>:<key>"')
  }
  requireDistinct(keys)
  return keys.sort((a, b) => a.version - b.version)
}

function readVersion(text: string, where: string): number {
  const version = /^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : 0
  if (version < 1 || version > MAX_VERSION) {
    throw new Error(`${where}: the version before ":" must be a whole number from 1 to ${MAX_VERSION}`)
  }
  return version
}

function readKey(text: string, where: string): Buffer {
  let key: Buffer | undefined
  if (/^[0-9A-Fa-f]{64}$/.test(text)) key = Buffer.from(text, 'hex')
  else if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) {
    key = decodeBase64url(text.replace('=', '').replaceAll('+', '-').replaceAll('/', '_'))
  }
  if (key === undefined) {
    throw new Error(`${where}: a key must be 32 bytes, written as 64 hex or as 43 or 44 base64 characters`)
  }
  if (new Set(key).size < 8) throw new Error(`${where}: this key is not random; generate one`)
  return key
}

function requireDistinct(keys: readonly MasterKey[]): void {
  if (keys.length === 0) throw new Error('at least one master key is required')
  const versions = new Set<number>()
  const seen = new Set<string>()
  for (const { version, key } of keys) {
    if (versions.has(version)) throw new Error(`master key version ${version} appears twice`)
    if (seen.has(key.toString('hex')))
      throw new Error(`master key version ${version} repeats another version's key`)
    versions.add(version)
    seen.add(key.toString('hex'))
  }
}

/** HKDF-SHA-256 (RFC 5869): each purpose has its own key, and none reveals anything about the master key. */
function derive(master: Buffer, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, Buffer.alloc(0), info, KEY_BYTES))
}

/** Throws `Error` if there are no keys, a key is not 32 bytes, or a version or key appears twice. */
export function createSealer(keys: readonly MasterKey[]): Sealer {
  requireDistinct(keys)
  const sealing = new Map<number, KeyObject>()
  const checks = new Map<number, Buffer>()
  for (const { version, key } of keys) {
    if (key.length !== KEY_BYTES) throw new Error(`master key version ${version} is not 32 bytes`)
    if (!Number.isInteger(version) || version < 1 || version > MAX_VERSION) {
      throw new Error(`a master key version must be a whole number from 1 to ${MAX_VERSION}`)
    }
    const derived = derive(key, 'mayfly seal')
    sealing.set(version, createSecretKey(derived))
    derived.fill(0)
    checks.set(version, derive(key, 'mayfly key check'))
  }
  const newestVersion = Math.max(...sealing.keys())
  const keyOf = (version: number): KeyObject => {
    const key = sealing.get(version)
    if (key === undefined)
      throw new SealError(`sealed under master key version ${version}, which is not in the master key file`)
    return key
  }
  return {
    newestVersion,
    versions: [...sealing.keys()],
    seal: (table, id, column, plaintext) =>
      encrypt(keyOf(newestVersion), newestVersion, place(table, id, column, newestVersion), plaintext),
    open: (table, id, column, sealed) => {
      const { version, bytes } = readSealed(sealed)
      return decrypt(keyOf(version), place(table, id, column, version), bytes)
    },
    versionOf: (sealed) => readSealed(sealed).version,
    keyCheck: () => writeChecks(checks),
    matchesCheck: (stored) => matchesChecks(checks, stored),
    lacksSome: (stored) => stored.split(' ').some((part) => !checks.has(Number(CHECK.exec(part)?.[1]))),
  }
}

/** The AAD: a sealed value opens only in its own row and column and under its own key version. */
function place(table: string, id: string, column: string, version: number): Buffer {
  if (table.includes('|') || id.includes('|') || column.includes('|')) {
    throw new SealError('a table, id or column with "|" in it cannot be bound to a sealed value')
  }
  return Buffer.from(`${table}|${id}|${column}|${version}`)
}

/** A random nonce is safe for 2^32 values under one key (NIST SP 800-38D §8.3). */
function encrypt(key: KeyObject, version: number, aad: Buffer, plaintext: string): string {
  if (!plaintext.isWellFormed())
    throw new SealError('text with lone surrogates cannot be sealed: it would not survive UTF-8')
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(aad)
  const body = cipher.update(plaintext, 'utf8')
  const sealed = Buffer.concat([nonce, body, cipher.final(), cipher.getAuthTag()])
  return `s1.${version}.${sealed.toString('base64url')}`
}

function readSealed(sealed: string): { version: number; bytes: Buffer } {
  const match = SEALED.exec(sealed)
  const bytes = match?.[2] === undefined ? undefined : decodeBase64url(match[2])
  if (match === null || bytes === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) {
    throw new SealError('the text does not have the sealed form')
  }
  return { version: Number(match[1]), bytes }
}

function decrypt(key: KeyObject, aad: Buffer, bytes: Buffer): string {
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const tagAt = bytes.length - TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(aad).setAuthTag(bytes.subarray(tagAt))
  const body = decipher.update(bytes.subarray(NONCE_BYTES, tagAt))
  try {
    return Buffer.concat([body, decipher.final()]).toString('utf8')
  } catch {
    body.fill(0)
    throw new SealError('the sealed value was changed, moved, or sealed under another key')
  }
}

function writeChecks(checks: ReadonlyMap<number, Buffer>): string {
  const versions = [...checks].sort(([a], [b]) => a - b)
  return versions.map(([version, check]) => `c1.${version}.${check.toString('base64url')}`).join(' ')
}

function matchesChecks(checks: ReadonlyMap<number, Buffer>, stored: string): boolean {
  let proven = 0
  for (const part of stored.split(' ')) {
    const match = CHECK.exec(part)
    const given = match?.[2] === undefined ? undefined : decodeBase64url(match[2])
    if (match === null || given === undefined) return false
    const known = checks.get(Number(match[1]))
    if (known === undefined) continue
    if (!timingSafeEqual(known, given)) return false
    proven += 1
  }
  return proven > 0
}
