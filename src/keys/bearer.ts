import { createHmac, createSecretKey, hash as digest, randomBytes, timingSafeEqual } from 'node:crypto'

const BEARER = /^ckr_[0-9a-f]{48}$/
const DATA_KEY_BYTES = 32

/** An agent's permanent bearer: `ckr_` and 192 random bits. */
export function mintBearer(): string {
  return `ckr_${randomBytes(24).toString('hex')}`
}

/** An OAuth client secret: `cks_` and 256 random bits. */
export function mintClientSecret(): string {
  return `cks_${randomBytes(32).toString('hex')}`
}

export function isBearerForm(text: string): boolean {
  return text.length === 52 && BEARER.test(text)
}

/** Identifies a bearer in memory, and only there: half the cost of the keyed hash in the store. */
export function fingerprint(bearer: string): string {
  return digest('sha256', bearer, 'base64')
}

/** 32 random bytes. Stored sealed, so that the hashes survive a change of the master key. */
export function generateDataKey(): Buffer {
  return randomBytes(DATA_KEY_BYTES)
}

export interface Hasher {
  /** HMAC-SHA-256 as 43 base64url characters; the store keeps it instead of the secret. */
  hash(secret: string): string
  /** Compares in constant time; false for a stored value of any other length. */
  matches(secret: string, storedHash: string): boolean
}

/** The secrets are random, so that a slow hash would add nothing. Throws `Error` if the key is not 32 bytes. */
export function createHasher(hashKey: Buffer): Hasher {
  if (hashKey.length !== DATA_KEY_BYTES) throw new Error('the hash key is not 32 bytes')
  const key = createSecretKey(hashKey)
  const hash = (secret: string): string =>
    createHmac('sha256', key).update(secret, 'utf8').digest('base64url')
  return {
    hash,
    matches: (secret, storedHash) => {
      const made = Buffer.from(hash(secret))
      const stored = Buffer.from(storedHash)
      return made.length === stored.length && timingSafeEqual(made, stored)
    },
  }
}
