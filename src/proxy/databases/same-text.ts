import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest()

/** Takes the same time for every `given` of one length. */
export function isSameText(given: Buffer | string, expected: Buffer | string): boolean {
  return timingSafeEqual(digest(Buffer.from(given)), digest(Buffer.from(expected)))
}
