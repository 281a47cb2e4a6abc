import { generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { equalRule, patternRule } from '../../src/config/text-rule.ts'
import type {
  ClaimRule,
  Identity,
  KeySource,
  Platform,
  TextRule,
} from '../../src/domain/identity/identity.ts'
import { type Algorithm, AUDIENCE, type PresetName, presetToken } from './preset-tokens.ts'

type Json = Readonly<Record<string, unknown>>

/** A key of an issuer, and what it signs. */
export interface Signer {
  readonly kid: string
  readonly alg: Algorithm
  /** As the issuer publishes it. */
  readonly jwk: JsonWebKey
  readonly privateJwk: JsonWebKey
  /** A compact JWS. Members of the header that are undefined are left out. */
  sign(claims: Json, header?: Json): string
  /** A signature over other bytes. */
  signBytes(bytes: string): string
}

export function newSigner(alg: Algorithm = 'RS256', kid: string = randomUUID()): Signer {
  const { privateKey, publicKey } = newKeys(alg)
  const named = { kid, use: 'sig', alg }
  const signBytes = (bytes: string) => signature(alg, privateKey, bytes)
  return {
    kid,
    alg,
    jwk: { ...publicKey.export({ format: 'jwk' }), ...named },
    privateJwk: { ...privateKey.export({ format: 'jwk' }), ...named },
    signBytes,
    sign: (claims, header = {}) => {
      const body = `${encoded({ typ: 'JWT', alg, kid, ...header })}.${encoded(claims)}`
      return `${body}.${signBytes(body)}`
    },
  }
}

function newKeys(alg: Algorithm): { privateKey: KeyObject; publicKey: KeyObject } {
  if (alg === 'RS256') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  return generateKeyPairSync('ec', { namedCurve: alg === 'ES256' ? 'P-256' : 'P-384' })
}

function signature(alg: Algorithm, key: KeyObject, text: string): string {
  const hash = { RS256: 'sha256', ES256: 'sha256', ES384: 'sha384', EdDSA: null }[alg]
  return sign(hash, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
}

export const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** `iat`, `nbf` and `exp`, in seconds. `now` is epoch ms. */
export const times = (now: number, lifeSeconds = 300, ageSeconds = 0) => {
  const issued = Math.floor(now / 1_000) - ageSeconds
  return { iat: issued, nbf: issued, exp: issued + lifeSeconds }
}

/** A token of this preset, signed by its issuer. Claims that are undefined are left out. */
export function signPreset(
  name: PresetName,
  signer: Signer,
  { now, claims = {}, header = {} }: { readonly now: number; readonly claims?: Json; readonly header?: Json },
): string {
  const preset = presetToken(name)
  return signer.sign({ ...preset.claims, ...times(now), ...claims }, { ...preset.header, ...header })
}

export const equal: (text: string) => TextRule = equalRule
export const pattern: (text: string) => TextRule = patternRule

export const claim = (name: string, rule: TextRule): ClaimRule => ({ ...rule, claim: name })

export const inline = (...signers: readonly Signer[]): KeySource => ({
  jwks: { keys: signers.map(({ jwk }) => ({ ...jwk })) },
  jwksUri: undefined,
  ca: undefined,
  local: false,
})

/** An entry of `identities` with the defaults of the setting, for this issuer. */
export function identity(name: string, more: Partial<Identity> = {}): Identity {
  return {
    name,
    issuer: { kind: 'issuer', issuer: 'https://issuer.test' },
    keys: inline(),
    audience: AUDIENCE,
    subject: pattern('.+'),
    claims: [],
    agent: { text: name, parts: [{ text: name }] },
    concurrent: 'share',
    scopes: [],
    maxTtlMs: undefined,
    agentTtlMs: 3_600_000,
    tokenTtlMs: undefined,
    maxAgeMs: 600_000,
    once: true,
    mode: 'enforce',
    tokenReview: undefined,
    ...more,
  }
}

/** An entry that pins what the preset says, with keys in the configuration. */
export function presetIdentity(name: PresetName, signer: Signer, more: Partial<Identity> = {}): Identity {
  const { issuer, claims, pinned } = presetToken(name)
  return identity(name, {
    issuer:
      issuer === undefined ? { kind: 'trust_domain', domain: 'example.org' } : { kind: 'issuer', issuer },
    keys: inline(signer),
    subject: pinned.length === 0 ? equal(String(claims['sub'])) : pattern('.+'),
    claims: pinned.map(([name, value]) => claim(name, equal(value))),
    ...more,
  })
}

export function platform(name: string, more: Partial<Platform> = {}): Platform {
  return {
    name,
    issuer: 'https://platform.test',
    keys: inline(),
    audience: AUDIENCE,
    scopes: [],
    ...more,
  }
}
