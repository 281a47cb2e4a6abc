import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import {
  basicConstraints,
  certificateBody,
  ECDSA_SHA256,
  extension,
  keyUsage,
  lastAuthority,
  withSignature,
} from '../../domain/certificate.ts'
import { ascii, der, OCTET_STRING, oid, SEQUENCE } from '../../domain/formats/der.ts'
import { DAY_MS } from '../../domain/limits.ts'
import type { Authority } from '../types.ts'

/** Longer than any run. The key dies with the process. */
const AUTHORITY_MS = 400 * DAY_MS
const LEAF_MS = DAY_MS
/** A child whose clock is a little behind accepts a new leaf, too. */
const EARLIER_MS = 5 * 60_000
/** A leaf that ends sooner is made anew. */
const RENEW_MS = LEAF_MS / 2
/** Hosts whose leaf is kept. */
const MOST_LEAVES = 1_000
/** RFC 5280, appendix A: ub-common-name. */
const MAX_COMMON_NAME = 64
const MAX_HOST = 253

/** An authority that one run's clients trust. Its key is in memory only. `now`: epoch ms. */
export function createAuthority(now: () => number): Authority {
  const keys = newKeys()
  const commonName = `Mayfly run ${randomBytes(4).toString('hex')}`
  const identifier = keyIdentifier(keys.publicKey)
  const certificate = certify(keys.privateKey, {
    ...{ commonName, publicKey: keys.publicKey, from: now() - DAY_MS, to: now() + AUTHORITY_MS },
    // keyCertSign and cRLSign.
    extensions: [lastAuthority(), keyUsage(1, 0x06), extension('551d0e', false, identifier)],
  })
  // RFC 5280 §4.2.1.1. Python's strict verification asks for it.
  const ofAuthority = extension('551d23', false, der(SEQUENCE, der(0x80, identifier.subarray(2))))

  function newLeaf(host: string): Leaf {
    const own = newKeys()
    const from = now() - EARLIER_MS
    const to = from + LEAF_MS
    const cert = certify(keys.privateKey, {
      ...{ issuer: commonName, publicKey: own.publicKey, from, to },
      commonName: host.length > MAX_COMMON_NAME ? 'mayfly' : host,
      extensions: [
        basicConstraints(false),
        // digitalSignature.
        keyUsage(7, 0x80),
        // serverAuth.
        extension('551d25', false, der(SEQUENCE, oid('2b06010505070301'))),
        extension('551d11', false, der(SEQUENCE, alternativeName(host))),
        extension('551d0e', false, keyIdentifier(own.publicKey)),
        ofAuthority,
      ],
    })
    return { key: String(own.privateKey.export({ type: 'pkcs8', format: 'pem' })), cert, endsAt: to }
  }

  const leaves = new Map<string, Leaf>()
  return {
    certificate,
    async leafFor(host) {
      const known = leaves.get(host)
      const leaf = known !== undefined && known.endsAt - now() > RENEW_MS ? known : newLeaf(host)
      leaves.delete(host)
      leaves.set(host, leaf)
      const [oldest] = leaves.keys()
      if (leaves.size > MOST_LEAVES && oldest !== undefined) leaves.delete(oldest)
      return leaf
    },
  }
}

interface Leaf {
  readonly key: string
  readonly cert: string
  readonly endsAt: number
}

interface Keys {
  readonly privateKey: KeyObject
  /** DER of the SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array
}

function newKeys(): Keys {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { privateKey, publicKey: publicKey.export({ type: 'spki', format: 'der' }) }
}

type Certified = Omit<Parameters<typeof certificateBody>[0], 'serial' | 'algorithm'>

function certify(key: KeyObject, of: Certified): string {
  const body = certificateBody({ ...of, serial: randomBytes(16), algorithm: ECDSA_SHA256 })
  return new X509Certificate(withSignature(body, ECDSA_SHA256, sign('sha256', body, key))).toString()
}

/** RFC 7093 §2, method 1: any unique value would do. */
function keyIdentifier(publicKey: Uint8Array): Uint8Array {
  return der(OCTET_STRING, createHash('sha256').update(publicKey).digest().subarray(0, 20))
}

/** A dNSName or an iPAddress (RFC 5280 §4.2.1.6). Throws for what is neither. */
function alternativeName(host: string): Uint8Array {
  if (isIP(host) !== 0) return der(0x87, ipaddr.parse(host).toByteArray())
  if (host.length > MAX_HOST || !/^[a-z\d_]([a-z\d_.-]*[a-z\d_])?$/i.test(host))
    throw new Error('a certificate was asked for what is no host')
  return der(0x82, ascii(host))
}
