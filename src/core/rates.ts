import { Problem } from '../domain/problems.ts'

/** `count` in any `perMs`, refilled evenly (a token bucket). Kept per node. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

/** A key begins with the name of its limit and a `|`. */
export interface Rates {
  /** Takes one and returns 0, or returns the seconds to wait. */
  take(key: string, rate: Rate, now: number): number
  /** As `take`, without taking. */
  wait(key: string, rate: Rate, now: number): number
}

interface Bucket {
  left: number
  at: number
}

/** For each limit. */
const MAX_KEYS = 50_000

export function createRates(): Rates {
  /** By limit, so that a flood of keys in one (anybody can make keys by failed logins) evicts no other. */
  const books = new Map<string, Map<string, Bucket>>()

  function bookOf(key: string): Map<string, Bucket> {
    const limit = key.slice(0, key.indexOf('|'))
    let book = books.get(limit)
    if (book === undefined) {
      book = new Map()
      books.set(limit, book)
    }
    return book
  }

  function refilled(known: Bucket | undefined, rate: Rate, now: number): Bucket {
    if (known === undefined) return { left: rate.count, at: now }
    // A clock that was set back refills nothing, and takes nothing away.
    const passed = Math.max(0, now - known.at)
    const left = Math.min(rate.count, known.left + (passed * rate.count) / rate.perMs)
    return { left, at: now }
  }

  function seconds(left: number, rate: Rate): number {
    return left >= 1 ? 0 : Math.max(1, Math.ceil(((1 - left) * rate.perMs) / rate.count / 1_000))
  }

  /** Evicts the least recently used tenth at once, so that a new key does not cost a walk over all of them. */
  function shed(book: Map<string, Bucket>): void {
    for (const key of book.keys()) {
      if (book.size < MAX_KEYS * 0.9) break
      book.delete(key)
    }
  }

  return {
    wait: (key, rate, now) => seconds(refilled(bookOf(key).get(key), rate, now).left, rate),
    take(key, rate, now) {
      const book = bookOf(key)
      const bucket = refilled(book.get(key), rate, now)
      const wait = seconds(bucket.left, rate)
      if (wait === 0) bucket.left -= 1
      // Deleted first, so that it moves to the end.
      if (!book.delete(key) && book.size >= MAX_KEYS) shed(book)
      book.set(key, bucket)
      return wait
    },
  }
}

/** Throws `rate_limited` when nothing is left. */
export function takeOrRefuse(rates: Rates, key: string, rate: Rate, now: number, message: string): void {
  const wait = rates.take(key, rate, now)
  if (wait > 0) throw new Problem('rate_limited', { message, retryAfterSeconds: wait })
}
