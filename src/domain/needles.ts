/** One of many texts that are looked for at once. */
export interface Needle<T> {
  readonly bytes: Uint8Array
  readonly of: T
}

export interface Hit<T> {
  readonly at: number
  readonly length: number
  readonly of: T
}

export interface Needles<T> {
  /** The first that begins at `from` or later; of those that begin at one place, the longest. */
  find(bytes: Uint8Array, from: number): Hit<T> | undefined
  /** How many bytes at the end, from `from` on, could be the beginning of one that goes on in the next chunk. */
  pending(bytes: Uint8Array, from: number): number
  /** Length of the longest; 0: there are none. */
  readonly longest: number
}

/** With longer windows the tables of long needles fill, and jumps become shorter. */
const MOST_WINDOW = 48
const BUCKETS = 4096
const bucketOf = (one: number, other: number) => (one ^ (other << 4)) & (BUCKETS - 1)

/**
 * Looks for all of them in one pass, with jumps (Wu and Manber, 1994): the two bytes at the end of a window as long as the shortest
 * needle say how far the next needle is away at least. Needles have two bytes or more.
 */
export function createNeedles<T>(list: readonly Needle<T>[]): Needles<T> {
  const needles = list.filter(({ bytes }) => bytes.length > 1)
  const longest = Math.max(0, ...needles.map(({ bytes }) => bytes.length))
  const { window, jumps, buckets } = tablesOf(needles)
  const starts = byBeginning(needles)
  return {
    longest,
    find(bytes, from) {
      if (longest === 0) return undefined
      const last = bytes.length - 1
      for (let at = from + window - 2; at < last; ) {
        const bucket = bucketOf(bytes[at] ?? 0, bytes[at + 1] ?? 0)
        const jump = jumps[bucket] ?? 1
        if (jump > 0) {
          at += jump
          continue
        }
        const hit = longestAt(buckets[bucket], bytes, at - window + 2)
        if (hit !== undefined) return hit
        at += 1
      }
      return undefined
    },
    pending(bytes, from) {
      const last = bytes.length - 1
      for (let at = Math.max(from, bytes.length - longest + 1); at < last; at += 1) {
        // Most places are told by their first two bytes.
        const some = starts[bucketOf(bytes[at] ?? 0, bytes[at + 1] ?? 0)]
        const left = bytes.length - at
        if (some?.some((needle) => needle.bytes.length > left && startsAt(needle, bytes, at, left)))
          return left
      }
      return last >= from && needles.some(({ bytes: needle }) => needle[0] === bytes[last]) ? 1 : 0
    },
  }
}

function tablesOf<T>(needles: readonly Needle<T>[]) {
  const window = needles.length === 0 ? 2 : Math.min(MOST_WINDOW, ...needles.map(({ bytes }) => bytes.length))
  const jumps = new Uint8Array(BUCKETS).fill(window - 1)
  const buckets: Needle<T>[][] = []
  for (const needle of needles) {
    for (let at = 0; at < window - 1; at += 1) {
      const bucket = bucketOf(needle.bytes[at] ?? 0, needle.bytes[at + 1] ?? 0)
      const jump = window - 2 - at
      if (jump < (jumps[bucket] ?? 0)) jumps[bucket] = jump
      if (jump === 0) {
        buckets[bucket] ??= []
        buckets[bucket].push(needle)
      }
    }
  }
  return { window, jumps, buckets }
}

function byBeginning<T>(needles: readonly Needle<T>[]): (Needle<T>[] | undefined)[] {
  const starts = new Array<Needle<T>[] | undefined>(BUCKETS).fill(undefined)
  for (const needle of needles) {
    const bucket = bucketOf(needle.bytes[0] ?? 0, needle.bytes[1] ?? 0)
    starts[bucket] = [...(starts[bucket] ?? []), needle]
  }
  return starts
}

function longestAt<T>(needles: readonly Needle<T>[] | undefined, bytes: Uint8Array, at: number) {
  let found: Needle<T> | undefined
  for (const needle of needles ?? []) {
    const { length } = needle.bytes
    if (
      length <= bytes.length - at &&
      length > (found?.bytes.length ?? 0) &&
      startsAt(needle, bytes, at, length)
    ) {
      found = needle
    }
  }
  return found && { at, length: found.bytes.length, of: found.of }
}

/** Whether the first `length` bytes of a needle, or all if it has fewer, stand at `at`. */
function startsAt<T>({ bytes: needle }: Needle<T>, bytes: Uint8Array, at: number, length: number): boolean {
  const end = Math.min(length, needle.length)
  for (let index = 0; index < end; index += 1) {
    if (needle[index] !== bytes[at + index]) return false
  }
  return true
}
