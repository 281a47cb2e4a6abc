import {
  ascii,
  BIT_STRING,
  BOOLEAN,
  der,
  derTime,
  INTEGER,
  OCTET_STRING,
  oid,
  SEQUENCE,
  SET,
  UTF8_STRING,
} from './formats/der.ts'

/** AlgorithmIdentifiers: RFC 5758 §3.2 and RFC 4055 §5. */
export const ECDSA_SHA256 = der(SEQUENCE, oid('2a8648ce3d040302'))
export const ECDSA_SHA384 = der(SEQUENCE, oid('2a8648ce3d040303'))
export const RSA_SHA256 = der(SEQUENCE, oid('2a864886f70d01010b'), [5, 0])

const TRUE = der(BOOLEAN, [0xff])

export function extension(id: string, isCritical: boolean, value: Uint8Array): Uint8Array {
  return der(SEQUENCE, oid(id), isCritical ? TRUE : [], der(OCTET_STRING, value))
}

/** RFC 5280 §4.2.1.9. */
export const basicConstraints = (isAuthority: boolean) =>
  extension('551d13', true, der(SEQUENCE, isAuthority ? TRUE : []))

/** The same for an authority that signs no further ones. */
export const lastAuthority = () => extension('551d13', true, der(SEQUENCE, TRUE, der(INTEGER, [0])))

/** RFC 5280 §4.2.1.3, as the bits of its BIT STRING. */
export const keyUsage = (unused: number, bits: number) =>
  extension('551d0f', true, der(BIT_STRING, [unused, bits]))

interface Certificate {
  /** 16 random bytes. */
  readonly serial: Uint8Array
  readonly commonName: string
  /** Common name of the authority that signs it; absent: it is signed by its own key. */
  readonly issuer?: string
  /** Epoch ms. */
  readonly from: number
  readonly to: number
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array
  readonly algorithm: Uint8Array
  readonly extensions: readonly Uint8Array[]
}

const nameOf = (commonName: string) =>
  der(SEQUENCE, der(SET, der(SEQUENCE, oid('550403'), der(UTF8_STRING, ascii(commonName)))))

/** The part of a certificate that a key signs (RFC 5280 §4.1.2). */
export function certificateBody(of: Certificate): Uint8Array {
  const { algorithm, publicKey, commonName, issuer = commonName } = of
  const [first = 0, ...others] = of.serial
  const validity = der(SEQUENCE, derTime(of.from), derTime(of.to))
  return der(
    SEQUENCE,
    der(0xa0, der(INTEGER, [2])),
    // Positive, and without a leading zero byte (RFC 5280 §4.1.2.2).
    der(INTEGER, [(first & 0x7f) | 0x40, ...others]),
    ...[algorithm, nameOf(issuer), validity, nameOf(commonName), publicKey],
    der(0xa3, der(SEQUENCE, ...of.extensions)),
  )
}

/** A certificate or a list of revoked ones: the body with its signature (RFC 5280 §4.1 and §5.1). */
export function withSignature(body: Uint8Array, algorithm: Uint8Array, signature: Uint8Array) {
  return der(SEQUENCE, body, algorithm, der(BIT_STRING, [0], signature))
}
