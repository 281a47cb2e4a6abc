import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import {
  ascii,
  BIT_STRING,
  BOOLEAN,
  der,
  derTime,
  INTEGER,
  OBJECT_ID,
  OCTET_STRING,
  SEQUENCE,
  SET,
  UTF8_STRING,
} from '../../domain/der.ts'
import { DAY_MS } from '../../domain/limits.ts'

/** A certificate for one connection between two processes, which they hand each other (go-plugin's AutoMTLS). */
export interface OwnCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM, PKCS #8. */
  readonly key: string
  readonly raw: Uint8Array
}

/** As long as a server may run; the key never leaves the process. */
const LIFETIME_MS = 3_650 * DAY_MS

const oid = (hex: string) => der(OBJECT_ID, Buffer.from(hex, 'hex'))
const ECDSA_WITH_SHA256 = der(SEQUENCE, oid('2a8648ce3d040302'))
/** go-plugin's clients ask for this name. */
const NAME = der(SEQUENCE, der(SET, der(SEQUENCE, oid('550403'), der(UTF8_STRING, ascii('localhost')))))
const TRUE = der(BOOLEAN, [0xff])

/** Self-signed and its own authority, as Go and gRPC require of a certificate that is trusted by itself. */
const EXTENSIONS = der(
  SEQUENCE,
  der(SEQUENCE, oid('551d13'), TRUE, der(OCTET_STRING, der(SEQUENCE, TRUE))),
  // digitalSignature and keyCertSign.
  der(SEQUENCE, oid('551d0f'), TRUE, der(OCTET_STRING, der(BIT_STRING, [2, 0x84]))),
  // serverAuth and clientAuth.
  der(
    SEQUENCE,
    oid('551d25'),
    der(OCTET_STRING, der(SEQUENCE, oid('2b06010505070301'), oid('2b06010505070302'))),
  ),
  der(SEQUENCE, oid('551d11'), der(OCTET_STRING, der(SEQUENCE, der(0x82, ascii('localhost'))))),
)

export function newCertificate(now: number): OwnCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, [2])),
    der(INTEGER, [1], randomBytes(15)),
    ECDSA_WITH_SHA256,
    NAME,
    der(SEQUENCE, derTime(now - DAY_MS), derTime(now + LIFETIME_MS)),
    NAME,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, EXTENSIONS),
  )
  const signature = sign('sha256', body, privateKey)
  const raw = der(SEQUENCE, body, ECDSA_WITH_SHA256, der(BIT_STRING, [0], signature))
  return { raw, certificate: toPem(raw), key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}

export function toPem(raw: Uint8Array): string {
  const lines =
    Buffer.from(raw)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}
