import {
  createPrivateKey,
  createPublicKey,
  KeyObject,
  randomBytes,
  type webcrypto,
  X509Certificate,
} from 'node:crypto'
import type * as Library from '@peculiar/x509'
import { misconfigured, unsupported } from '../../domain/backend-error.ts'
import { der, SEQUENCE } from '../../domain/formats/der.ts'
import { DAY_MS } from '../../domain/limits.ts'
import type { RevokedCredential } from '../kind.ts'
import { type Signer, writeList } from './list.ts'

const CA_MS = 3_650 * DAY_MS
const CRL_URL = '2.5.29.31'
const EC = { name: 'ECDSA', namedCurve: 'P-256' } as const

export async function loadX509(): Promise<typeof Library> {
  // The ASN.1 schema decorators need the polyfill in place before the library is evaluated.
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

export interface Authority {
  readonly pem: string
  readonly endsAt: number
  issue(of: LeafOf): Promise<string>
  /** DER of a list (RFC 5280 §5). */
  list(revoked: readonly RevokedCredential[], now: number): Promise<Uint8Array>
}

export interface LeafOf {
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array
  readonly serial: string
  readonly hosts: readonly string[]
  readonly uris: readonly string[]
  readonly usages: readonly ('serverAuth' | 'clientAuth')[]
  readonly from: number
  readonly to: number
  readonly listUrl: string
}

const pemOf = (certificate: Library.X509Certificate) =>
  new X509Certificate(Buffer.from(certificate.rawData)).toString()

const keyPemOf = (key: webcrypto.CryptoKey) =>
  String(KeyObject.from(key).export({ type: 'pkcs8', format: 'pem' }))

/** A self-signed P-256 authority that can sign no further authorities (RFC 5280 §4.2.1.9). */
export async function newAuthority(
  now: number,
): Promise<{ readonly key: string; readonly certificate: string }> {
  const x509 = await loadX509()
  const keys = await crypto.subtle.generateKey(EC, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: `01${randomBytes(15).toString('hex')}`,
    // Unique, because verifiers find lists and authorities by this name.
    name: [{ CN: [`Mayfly CA ${randomBytes(4).toString('hex')}`] }],
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + CA_MS),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { key: keyPemOf(keys.privateKey), certificate: pemOf(certificate) }
}

/** Throws `misconfigured` for what cannot sign certificates and lists. */
export async function openAuthority(keyPem: string, certificatePem: string): Promise<Authority> {
  const { key, certificate } = readPair(keyPem, certificatePem)
  const signingAlgorithm = algorithmOf(key)
  const x509 = await loadX509()
  const ca = new x509.X509Certificate(certificate.raw)
  const usages = ca.getExtension(x509.KeyUsagesExtension)?.usages
  const needed = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign
  if (!certificate.ca || (usages !== undefined && (usages & needed) !== needed)) {
    throw misconfigured('"ca_certificate" may not sign certificates and revocation lists.')
  }
  const signingKey = key.toCryptoKey({ ...EC, ...signingAlgorithm }, false, ['sign'])
  const identifier = ca.getExtension(x509.SubjectKeyIdentifierExtension)?.keyId
  const issuerKey = identifier === undefined ? [] : [new x509.AuthorityKeyIdentifierExtension(identifier)]
  const signed = { issuer: ca.subjectName, signingKey, signingAlgorithm }
  const signer: Signer = {
    ...{ key, hash: signingAlgorithm.hash, name: new Uint8Array(ca.subjectName.toArrayBuffer()) },
    extensions: issuerKey.map(({ rawData }) => new Uint8Array(rawData)),
  }
  return {
    pem: certificate.toString(),
    endsAt: ca.notAfter.getTime(),
    async issue({ publicKey, hosts, uris, usages: extended, ...of }) {
      const spki = new x509.PublicKey(publicKey)
      const [common] = hosts.filter((host) => host.length <= 64)
      const leaf = await x509.X509CertificateGenerator.create({
        ...signed,
        serialNumber: of.serial,
        subject: common === undefined ? [] : [{ CN: [common] }],
        notBefore: new Date(of.from),
        notAfter: new Date(of.to),
        publicKey: spki,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension(extended.map((usage) => x509.ExtendedKeyUsage[usage])),
          new x509.SubjectAlternativeNameExtension(
            [
              ...hosts.map((value) => ({ type: 'dns', value }) as const),
              ...uris.map((value) => ({ type: 'url', value }) as const),
            ],
            // Critical where the subject is empty (RFC 5280 §4.1.2.6).
            common === undefined,
          ),
          await x509.SubjectKeyIdentifierExtension.create(spki),
          ...issuerKey,
          // RFC 5280 §4.2.1.13: a distribution point whose full name is one URI.
          new x509.Extension(
            CRL_URL,
            false,
            der(SEQUENCE, der(SEQUENCE, der(0xa0, der(0xa0, der(0x86, Buffer.from(of.listUrl)))))),
          ),
        ],
      })
      return pemOf(leaf)
    },
    list: (revoked, now) => writeList(signer, revoked, now),
  }
}

function readPair(keyPem: string, certificatePem: string): { key: KeyObject; certificate: X509Certificate } {
  let pair: { key: KeyObject; certificate: X509Certificate }
  try {
    pair = { key: createPrivateKey(keyPem), certificate: new X509Certificate(certificatePem) }
  } catch {
    // Nothing of a private key may get into a message.
    throw misconfigured('"ca_key" or "ca_certificate" is not valid PEM.')
  }
  if (pair.certificate.checkPrivateKey(pair.key)) return pair
  throw misconfigured('"ca_certificate" is not the certificate of "ca_key".')
}

function algorithmOf(key: KeyObject) {
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'rsa' && modulusLength >= 2048)
    return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } as const
  if (namedCurve === 'prime256v1') return { name: 'ECDSA', hash: 'SHA-256', namedCurve: 'P-256' } as const
  if (namedCurve === 'secp384r1') return { name: 'ECDSA', hash: 'SHA-384', namedCurve: 'P-384' } as const
  throw misconfigured('"ca_key" is neither P-256, P-384 nor RSA of 2048 bits or more.')
}

/** The key of a certificate request whose signature is right, as DER. Throws `unsupported`. */
export async function readRequest(pem: string): Promise<Uint8Array> {
  try {
    const x509 = await loadX509()
    const request = new x509.Pkcs10CertificateRequest(pem)
    const spki = Buffer.from(request.publicKey.rawData)
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPublicKey({
      ...{ key: spki, format: 'der', type: 'spki' },
    })
    const isStrong =
      (type === 'rsa' && (details?.modulusLength ?? 0) >= 2048) ||
      (type === 'ec' && /^(prime256v1|secp384r1|secp521r1)$/.test(details?.namedCurve ?? '')) ||
      type === 'ed25519'
    if (isStrong && (await request.verify())) return spki
  } catch {
    // Not in the form of a request.
  }
  throw unsupported(
    '"csr" is not a certificate request (PEM) with a valid signature by an ECDSA, Ed25519 or RSA key of at least 2048 bits.',
  )
}

/** A fresh P-256 key pair. */
export async function newKeyPair(): Promise<{ readonly pem: string; readonly publicKey: Uint8Array }> {
  const keys = await crypto.subtle.generateKey(EC, true, ['sign', 'verify'])
  const publicKey = KeyObject.from(keys.publicKey).export({ type: 'spki', format: 'der' })
  return { pem: keyPemOf(keys.privateKey), publicKey }
}
