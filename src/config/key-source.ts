import { createPublicKey } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { InvalidValue, quote } from '../domain/fault.ts'
import type { KeySource } from '../domain/identity/identity.ts'
import { isIssuer } from '../domain/identity/match.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import type { ReadFile } from '../files/read-secret.ts'
import { type Note, readNoting } from './check-entries.ts'

/** What entries of `identities` and `platforms` say of keys. */
interface KeyFields {
  jwks_uri?: string
  jwks?: { keys: Record<string, unknown>[] }
  ca_file?: string
  local?: boolean
}

/** The authorities are still in their file. */
export interface CheckedKeys extends Omit<KeySource, 'ca'> {
  readonly caFile: string | undefined
}

/** A trust bundle of SPIFFE also has keys for certificates (`x509-svid`), without a `kid`. */
const isForTokens = (key: Readonly<Record<string, unknown>>) => key['use'] !== 'x509-svid'

export function checkKeys(
  { jwks, jwks_uri: jwksUri, ca_file: caFile, local }: KeyFields,
  note: Note,
): CheckedKeys {
  const isLocal = local ?? false
  if (jwks !== undefined && jwksUri !== undefined) note(['jwks'], 'jwks_uri is also set; keep one of them')
  const fault = jwksUri === undefined ? undefined : addressFault(jwksUri, isLocal)
  if (fault !== undefined) note(['jwks_uri'], fault)
  const signing = (jwks?.keys ?? []).filter(isForTokens)
  jwks?.keys.forEach((key, index) => {
    const wrong = keyFault(key)
    if (wrong !== undefined) note(['jwks', 'keys', index], wrong)
    else if (isForTokens(key) && signing.length > 1 && typeof key['kid'] !== 'string')
      note(['jwks', 'keys', index], 'has no kid, by which tokens name one of several keys')
  })
  const kids = (jwks?.keys ?? []).map((key) => key['kid'])
  kids.forEach((kid, index) => {
    if (kid !== undefined && kids.indexOf(kid) !== index)
      note(['jwks', 'keys', index], 'has the kid of another key')
  })
  return { jwks, jwksUri, caFile, local: isLocal }
}

/** Why it is no issuer to trust; undefined: it is one. */
export function issuerFault(issuer: string, isLocal: boolean): string | undefined {
  if (issuer.includes('/.well-known/')) return 'is the issuer itself: without /.well-known/ and what follows'
  const fault = addressFault(issuer, isLocal)
  if (fault !== undefined) return fault
  return isIssuer(issuer) ? undefined : 'contains "..", "//" or characters that no issuer has'
}

/** Why an address is none that keys may come from. */
export function addressFault(text: string, isLocal: boolean): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['https:', 'http:'].includes(url.protocol))
    return 'is not an address such as https://issuer.example.com'
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password'
  if (/[?#]/.test(text)) return 'must not have a query or fragment'
  if (url.protocol === 'http:' && !isLocal) return 'must start with https:// (http only with "local: true")'
  if (isLoopbackHost(url.hostname) && !isLocal)
    return 'is on this machine; if that is intended, add "local: true"'
  return undefined
}

/** RFC 7518 §6.2.2, §6.3.2 and §6.4, RFC 8037 §2: what only private and symmetric keys have. */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

function keyFault(key: Readonly<Record<string, unknown>>): string | undefined {
  if (PRIVATE.some((name) => Object.hasOwn(key, name)))
    return 'is a private or secret key: only public keys belong here; the issuer should replace this one'
  if (!['RSA', 'EC', 'OKP'].includes(String(key['kty']))) return 'is not a public key of RSA, EC or OKP'
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({ key, format: 'jwk' })
    if (asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) < 2048)
      return 'is shorter than 2048 bits'
    return undefined
  } catch {
    return 'is not a public key that can be read'
  }
}

/** Reads the authorities of an entry, PEM; undefined if it names no file of them. Notes what is wrong at `ca_file`. */
export async function readAuthorities(
  caFile: string | undefined,
  readFile: ReadFile,
  note: Note,
): Promise<string | undefined> {
  if (caFile === undefined) return undefined
  const read = await readNoting(caFile, readFile, requireCertificates, (message) =>
    note(['ca_file'], message),
  )
  return read.reveal()
}

function requireCertificates(text: string): void {
  try {
    if (!text.includes('-----BEGIN CERTIFICATE-----')) throw new Error('none')
    createSecureContext({ ca: text })
  } catch {
    throw new InvalidValue('the file holds no certificates in PEM')
  }
}

/** Reports names that are no names, or that another entry has. */
export function checkName(name: string, names: Set<string>, pattern: RegExp, what: string, note: Note): void {
  if (!pattern.test(name))
    note(
      ['name'],
      `${quote(name)} is not a name of letters, digits, ".", "_" and "-", with a letter or digit first`,
    )
  const key = name.toLowerCase()
  if (names.has(key)) note(['name'], `${quote(name)} is already the name of another ${what}`)
  names.add(key)
}
