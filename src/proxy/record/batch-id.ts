import { randomBytes } from 'node:crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/** 26 characters of 5 random bits. */
export function newBatchId(): string {
  return Array.from(randomBytes(26), (byte) => ALPHABET[byte % 32]).join('')
}
