import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { encodeTail, encodeTime, ID_PREFIX, type IdKind } from '../../src/domain/ids.ts'

/** What is random elsewhere and the same in every run here, so that a screenshot changes only with what it shows. */

/** A Tuesday afternoon. It is far ahead: a server takes entries that are new, and this one is never behind the real time. */
export const NOW = Date.parse('2030-03-05T14:20:00Z')

/** mulberry32: numbers from 0 to 1. */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** As `createIdSource` of src/keys, without chance. */
export function createIds(now: () => number): { body(): string; id(kind: IdKind): string } {
  let count = 0
  let ms = 0
  let counter = 0
  const body = () => {
    count += 1
    const clock = now()
    counter = clock > ms || counter >= 4_095 ? 0 : counter + 1
    ms = Math.max(ms + (counter === 0 && clock <= ms ? 1 : 0), clock)
    return encodeTime(ms) + encodeTail(counter, createHash('sha256').update(`id ${count}`).digest())
  }
  return { body, id: (kind) => ID_PREFIX[kind] + body() }
}

/** PKCS #8 around a seed of Ed25519 (RFC 8410 §7). */
const ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The public key of a machine that enrolls, as a JWK. */
export function publicKeyOf(name: string): Record<string, unknown> {
  const seed = createHash('sha256').update(name).digest()
  const key = createPrivateKey({ key: Buffer.concat([ED25519, seed]), format: 'der', type: 'pkcs8' })
  return { ...createPublicKey(key).export({ format: 'jwk' }) }
}
