import { type KeyObject, sign } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { promisify } from 'node:util'
import { ECDSA_SHA256, ECDSA_SHA384, extension, RSA_SHA256, withSignature } from '../../domain/certificate.ts'
import { der, derTime, INTEGER, SEQUENCE } from '../../domain/formats/der.ts'
import { hexOf } from '../../domain/ids.ts'
import { DAY_MS } from '../../domain/limits.ts'
import type { RevokedCredential } from '../kind.ts'

/** Verifiers refuse every certificate once the list is older than this: time enough to notice that none is fetched. */
const VALIDITY_MS = 7 * DAY_MS
/** Entries that are written before other work gets its turn. */
const SLICE = 1_000
const SERIAL_BYTES = 16
/** Two heads, the serial, and a GeneralizedTime. */
const LONGEST_ENTRY = 4 + SERIAL_BYTES + 17

/** 2.5.29.20, cRLNumber. */
const LIST_NUMBER = '551d14'

/**
 * The bits of the credential's id (RFC 5280 §4.1.2.2: positive, at most 20 octets). They begin with 48 bits of time, of which
 * the first is zero until the year 6429, and the first octet is not.
 */
export const serialOf = (credentialId: string): string => hexOf('credential', credentialId)

export interface Signer {
  readonly key: KeyObject
  readonly hash: 'SHA-256' | 'SHA-384'
  /** DER of the subject of the authority. */
  readonly name: Uint8Array
  /** DER of the extension that names its key, where it has an identifier. */
  readonly extensions: readonly Uint8Array[]
}

function algorithmOf({ key, hash }: Signer): Uint8Array {
  if (key.asymmetricKeyType === 'rsa') return RSA_SHA256
  return hash === 'SHA-256' ? ECDSA_SHA256 : ECDSA_SHA384
}

const signAway = promisify(sign)

/**
 * A certificate revocation list in DER (RFC 5280 §5.1). Written here, because the library's generator takes time that
 * grows with the square of the entries: minutes for 20,000.
 */
export async function writeList(
  signer: Signer,
  revoked: readonly RevokedCredential[],
  now: number,
): Promise<Uint8Array> {
  const algorithm = algorithmOf(signer)
  const entries = await writeEntries(revoked)
  // A number that grows with every list (RFC 5280 §5.2.3): the time does.
  const number = der(INTEGER, Buffer.from(now.toString(16).padStart(12, '0'), 'hex'))
  const body = der(
    SEQUENCE,
    // Version 2.
    ...[der(INTEGER, [1]), algorithm, signer.name, derTime(now), derTime(now + VALIDITY_MS)],
    // Absent where it would be empty (RFC 5280 §5.1.2.6).
    ...(revoked.length === 0 ? [] : [der(SEQUENCE, entries)]),
    der(0xa0, der(SEQUENCE, ...signer.extensions, extension(LIST_NUMBER, false, number))),
  )
  const signature = await signAway(signer.hash.replace('-', ''), body, signer.key)
  return withSignature(body, algorithm, signature)
}

/** Serial number and time of each (RFC 5280 §5.1.2.6). Into one buffer: a small one for every value would keep the collector busy. */
async function writeEntries(revoked: readonly RevokedCredential[]): Promise<Buffer> {
  const room = Buffer.alloc(revoked.length * LONGEST_ENTRY)
  let end = 0
  let last = { second: Number.NaN, time: derTime(0) }
  for (const [index, { credentialId, endedAt }] of revoked.entries()) {
    const second = Math.floor(endedAt / 1_000)
    if (second !== last.second) last = { second, time: derTime(endedAt) }
    const { time } = last
    room.set([SEQUENCE, 2 + SERIAL_BYTES + time.length, INTEGER, SERIAL_BYTES], end)
    room.write(serialOf(credentialId), end + 4, 'hex')
    room.set(time, end + 4 + SERIAL_BYTES)
    end += 4 + SERIAL_BYTES + time.length
    if (index % SLICE === SLICE - 1) await setImmediate()
  }
  return room.subarray(0, end)
}
