import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { misconfigured } from '../../domain/backend-error.ts'

/**
 * NATS writes Ed25519 keys as base32 of a prefix, the key and a checksum: https://github.com/nats-io/nkeys (README, "Encoding").
 * The library for it computes in JavaScript, which takes a hundred times as long as Node.
 */
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
/** Begins a seed with S, an account's key with A, a user's with U. */
const SEED = 18 << 3
const ACCOUNT = 0
const USER = 20 << 3
/** An Ed25519 private key (RFC 8410, §7) up to the key itself. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

const newPair = promisify(generateKeyPair)

export interface AccountKey {
  readonly privateKey: KeyObject
  /** `A…` */
  readonly id: string
}

export interface UserKey {
  /** `U…` */
  readonly id: string
  /** `SU…` */
  readonly seed: string
}

/** Throws `BackendError` (`misconfigured`) unless the text is the seed of an account key. */
export function accountKeyOf(seed: string): AccountKey {
  const raw = decode(seed.trim())
  const isSeed = raw?.length === 34 && raw[0] === (SEED | (ACCOUNT >> 5)) && raw[1] === (ACCOUNT & 31) << 3
  if (raw === undefined || !isSeed) {
    throw misconfigured('"signing_key" is not the seed of an account key, which begins with SA.')
  }
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8, raw.subarray(2)]),
    format: 'der',
    type: 'pkcs8',
  })
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { privateKey, id: encode(Buffer.concat([Buffer.from([ACCOUNT]), Buffer.from(x, 'base64url')])) }
}

export function isAccountId(text: string): boolean {
  const raw = decode(text)
  return raw?.length === 33 && raw[0] === ACCOUNT
}

export async function newUserKey(): Promise<UserKey> {
  const { privateKey } = await newPair('ed25519')
  const { d = '', x = '' } = privateKey.export({ format: 'jwk' })
  return {
    id: encode(Buffer.concat([Buffer.from([USER]), Buffer.from(x, 'base64url')])),
    seed: encode(
      Buffer.concat([Buffer.from([SEED | (USER >> 5), (USER & 31) << 3]), Buffer.from(d, 'base64url')]),
    ),
  }
}

function encode(raw: Buffer): string {
  const checksum = Buffer.alloc(2)
  checksum.writeUInt16LE(crc16(raw))
  let [text, bits, held] = ['', 0, 0]
  for (const byte of Buffer.concat([raw, checksum])) {
    held = ((held << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32.charAt((held >> (bits - 5)) & 31)
  }
  return bits === 0 ? text : text + BASE32.charAt((held << (5 - bits)) & 31)
}

/** Without the checksum; `undefined` if that, or a character, is wrong. */
function decode(text: string): Buffer | undefined {
  const bytes: number[] = []
  let [bits, held] = [0, 0]
  for (const character of text) {
    const value = BASE32.indexOf(character)
    if (value < 0) return undefined
    held = ((held << 5) | value) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((held >> bits) & 0xff)
  }
  if (bytes.length < 3) return undefined
  const all = Buffer.from(bytes)
  const raw = all.subarray(0, -2)
  return all.readUInt16LE(raw.length) === crc16(raw) ? raw : undefined
}

/** CRC-16/XMODEM, as nkeys has it. */
function crc16(bytes: Uint8Array): number {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
    crc &= 0xffff
  }
  return crc
}
