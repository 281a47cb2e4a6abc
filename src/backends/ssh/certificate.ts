import { type KeyObject, randomBytes, sign } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { misconfigured } from '../../domain/backend-error.ts'
import { hexOf, isId } from '../../domain/ids.ts'
import type { RevokedCredential } from '../kind.ts'
import { blobOf, ED25519, lineOf, type PublicKey, publicKeyOf, string, uint32, uint64 } from './wire.ts'

const NONCE_BYTES = 32
const USER_CERTIFICATE = 1

export interface CertificateOf {
  readonly key: PublicKey
  readonly serial: bigint
  readonly keyId: string
  readonly principals: readonly string[]
  /** Seconds since 1970. Valid from `after` on, and no longer at `before`. */
  readonly after: number
  readonly before: number
  readonly options: Readonly<Record<string, string>>
  readonly extensions: readonly string[]
}

/** A user certificate (OpenSSH, PROTOCOL.certkeys) as a line of a `-cert.pub` file. */
export function signCertificate(ca: KeyObject, of: CertificateOf): string {
  // A certificate without principals is valid for every one, under some ways of trusting its CA (PROTOCOL.certkeys).
  if (of.principals.length === 0) throw new RangeError('a certificate needs principals')
  const type = of.key.type.replace(/(@openssh\.com)?$/, '-cert-v01@openssh.com')
  const body = Buffer.concat([
    ...[string(type), string(randomBytes(NONCE_BYTES)), ...of.key.fields.map(string)],
    ...[uint64(of.serial), uint32(USER_CERTIFICATE), string(of.keyId)],
    string(Buffer.concat(of.principals.map(string))),
    ...[uint64(BigInt(of.after)), uint64(BigInt(of.before))],
    // The value of an option is a string within the string; a flag has no value.
    optionList(Object.entries(of.options).map(([name, value]) => [name, string(value)])),
    optionList(of.extensions.map((name) => [name, Buffer.alloc(0)])),
    ...[string(''), string(blobOf(publicKeyOf(ca)))],
  ])
  const signature = Buffer.concat([string(ED25519), string(sign(null, body, ca))])
  return lineOf(type, Buffer.concat([body, string(signature)]), of.keyId)
}

/** Names must be in lexical order, and occur once (PROTOCOL.certkeys). */
function optionList(options: readonly (readonly [string, Buffer])[]): Buffer {
  const sorted = [...options].sort(([a], [b]) => (a < b ? -1 : 1))
  return string(Buffer.concat(sorted.flatMap(([name, data]) => [string(name), string(data)])))
}

/** The last 64 bits of the credential's id, of which 62 are random. Never zero, which would mean "without a serial". */
export const serialOf = (credentialId: string): bigint => BigInt(`0x${serialDigitsOf(credentialId)}`)

function serialDigitsOf(credentialId: string): string {
  if (!isId('credential', credentialId)) {
    throw misconfigured('The credential id is not well formed.')
  }
  return hexOf('credential', credentialId).slice(-16)
}

const KRL_MAGIC = Buffer.from('SSHKRL\n\0')
const KRL_FORMAT = 1
const SECTION_CERTIFICATES = Buffer.from([1])
const SECTION_SERIAL_LIST = Buffer.from([0x20])
/** Serials that are written before other work gets its turn. */
const SLICE = 1_000
const SERIAL_BYTES = 8

/** A key revocation list (OpenSSH, PROTOCOL.krl) of these certificates. It has no signature: no sshd would check one. */
export async function writeKrl(
  revoked: readonly RevokedCredential[],
  now: number,
  comment: string,
): Promise<Buffer> {
  // Into one buffer: a small one for every serial would keep the collector busy.
  const serials = Buffer.alloc(revoked.length * SERIAL_BYTES)
  for (const [index, { credentialId }] of revoked.entries()) {
    serials.write(serialDigitsOf(credentialId), index * SERIAL_BYTES, 'hex')
    if (index % SLICE === SLICE - 1) await setImmediate()
  }
  // An empty key of the CA stands for every CA: the serials are random, and an earlier key of this backend may have signed.
  const certificates = Buffer.concat([
    ...[string(''), string('')],
    ...(serials.length === 0 ? [] : [SECTION_SERIAL_LIST, string(serials)]),
  ])
  return Buffer.concat([
    ...[KRL_MAGIC, uint32(KRL_FORMAT), uint64(BigInt(now)), uint64(BigInt(Math.floor(now / 1000)))],
    ...[uint64(0n), string(''), string(comment)],
    ...[SECTION_CERTIFICATES, string(certificates)],
  ])
}
