import { type KeyObject, sign } from 'node:crypto'
import { DAY_MS } from '../../domain/limits.ts'
import type { RevokedCredential } from '../kind.ts'

/** Verifiers refuse every certificate once the list is older than this: time enough to notice that none is fetched. */
const VALIDITY_MS = 7 * DAY_MS

const SEQUENCE = 0x30
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const OBJECT_ID = 0x06
const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
/** 2.5.29.20, cRLNumber. */
const LIST_NUMBER = Buffer.from('551d14', 'hex')

/** One value in DER (X.690 §8.1.3). */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length < 128) return Buffer.concat([Buffer.from([tag, length]), content])
  const digits = length.toString(16)
  const size = Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length]), size, content])
}

/** UTCTime until 2049, then GeneralizedTime (RFC 5280 §5.1.2.4). */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return text < '2050' ? der(UTC_TIME, Buffer.from(text.slice(2))) : der(GENERALIZED_TIME, Buffer.from(text))
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * The 128 bits of the credential's id in hexadecimal digits (RFC 5280 §4.1.2.2: positive, at most 20 octets). They begin
 * with 48 bits of time, of which the first is zero until the year 6429, and the first octet is not.
 */
export function serialOf(credentialId: string): string {
  const digits = [...credentialId.slice('cred_'.length)]
  // The first two digits carry 8 bits, and each eight of the others 40.
  const parts = [digits.splice(0, 2), digits.splice(0, 8), digits.splice(0, 8), digits]
  return parts
    .map((part, index) => {
      const value = part.reduce((sum, digit) => sum * 32 + ALPHABET.indexOf(digit), 0)
      return value.toString(16).padStart(index === 0 ? 2 : 10, '0')
    })
    .join('')
}

export interface Signer {
  readonly key: KeyObject
  readonly hash: 'SHA-256' | 'SHA-384'
  /** DER of the subject of the authority. */
  readonly name: Uint8Array
  /** DER of the extension that names its key, where it has an identifier. */
  readonly extensions: readonly Uint8Array[]
}

/** AlgorithmIdentifier: RFC 5758 §3.2 (ecdsa-with-SHA256 and -SHA384), RFC 4055 §5 (sha256WithRSAEncryption). */
function algorithmOf({ key, hash }: Signer): Buffer {
  if (key.asymmetricKeyType === 'rsa') {
    return der(SEQUENCE, der(OBJECT_ID, Buffer.from('2a864886f70d01010b', 'hex')), Buffer.from([5, 0]))
  }
  const curve = hash === 'SHA-256' ? '02' : '03'
  return der(SEQUENCE, der(OBJECT_ID, Buffer.from(`2a8648ce3d0403${curve}`, 'hex')))
}

/**
 * A certificate revocation list in DER (RFC 5280 §5.1). Written here, because the library's generator takes time that
 * grows with the square of the entries: minutes for 20,000.
 */
export function writeList(signer: Signer, revoked: readonly RevokedCredential[], now: number): Buffer {
  const algorithm = algorithmOf(signer)
  const entries = revoked.map(({ credentialId, endedAt }) =>
    der(SEQUENCE, der(INTEGER, Buffer.from(serialOf(credentialId), 'hex')), time(endedAt)),
  )
  // A number that grows with every list (RFC 5280 §5.2.3): the time does.
  const number = der(INTEGER, Buffer.from(now.toString(16).padStart(12, '0'), 'hex'))
  const listNumber = der(SEQUENCE, der(OBJECT_ID, LIST_NUMBER), der(OCTET_STRING, number))
  const body = der(
    SEQUENCE,
    // Version 2.
    ...[der(INTEGER, Buffer.from([1])), algorithm, signer.name, time(now), time(now + VALIDITY_MS)],
    // Absent where it would be empty (RFC 5280 §5.1.2.6).
    ...(entries.length === 0 ? [] : [der(SEQUENCE, Buffer.concat(entries))]),
    der(0xa0, der(SEQUENCE, ...signer.extensions, listNumber)),
  )
  const signature = sign(signer.hash.replace('-', ''), body, signer.key)
  return der(SEQUENCE, body, algorithm, der(BIT_STRING, Buffer.from([0]), signature))
}
