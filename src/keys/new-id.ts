import { randomFillSync } from 'node:crypto'
import { encodeTail, encodeTime, ID_PREFIX, type IdKind } from '../domain/ids.ts'

export interface IdSource {
  /** 26 characters, greater than all earlier ones from this source. `at`: epoch ms, where the caller has read the clock already. */
  body(at?: number): string
  /** A body with the prefix of its kind. */
  id(kind: IdKind): string
}

const POOL_BYTES = 8_192
/** Most random bytes per id: 13 for the tail, 2 for the counter of a new ms. */
const ID_BYTES = 15
const MAX_COUNTER = 4_095
const MAX_TIME = 2 ** 48 - 1

/**
 * `now` is epoch ms. Strictly monotonic (RFC 9562 §6.2, method 1): while the clock stands still or goes back, the
 * last ms stays and the counter grows; a full counter borrows the next ms.
 */
export function createIdSource(now: () => number): IdSource {
  const pool = Buffer.allocUnsafeSlow(POOL_BYTES)
  let used = POOL_BYTES
  let ms = 0
  let prefix = encodeTime(0)
  let counter = 0

  const enter = (next: number): void => {
    ms = next
    prefix = encodeTime(next)
    // Start below 2048: at least 2048 ids fit into any ms, and the number of earlier ids stays hidden.
    counter = pool.readUInt16LE(used) & 2_047
    pool[used] = 0
    pool[used + 1] = 0
    used += 2
  }

  const body = (at = now()): string => {
    if (used + ID_BYTES > POOL_BYTES) {
      randomFillSync(pool)
      used = 0
    }
    const clock = Math.min(Math.floor(at), MAX_TIME)
    if (clock > ms) enter(clock)
    else if (counter < MAX_COUNTER) counter += 1
    else enter(ms + 1)
    const text = prefix + encodeTail(counter, pool, used)
    // Erase used randomness: a core dump must not reveal past ids.
    for (const end = used + 13; used < end; used += 1) pool[used] = 0
    return text
  }

  return { body, id: (kind) => ID_PREFIX[kind] + body() }
}
