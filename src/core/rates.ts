import { Problem } from '../domain/problems.ts'

/** `count` in any `perMs`, refilled evenly (a token bucket). Kept per node. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

export interface Rates {
  /** Takes one, or says how many seconds to wait. */
  take(key: string, rate: Rate, now: number): number
  /** As `take`, without taking. */
  wait(key: string, rate: Rate, now: number): number
}

const MAX_KEYS = 50_000

export function createRates(): Rates {
  const buckets = new Map<string, { left: number; at: number; rate: Rate }>()

  function refilled(key: string, rate: Rate, now: number): { left: number; at: number; rate: Rate } {
    const known = buckets.get(key)
    if (known === undefined) return { left: rate.count, at: now, rate }
    return {
      left: Math.min(rate.count, known.left + ((now - known.at) * rate.count) / rate.perMs),
      at: now,
      rate,
    }
  }

  function seconds(left: number, rate: Rate): number {
    return left >= 1 ? 0 : Math.max(1, Math.ceil(((1 - left) * rate.perMs) / rate.count / 1_000))
  }

  /** The oldest go, a tenth at a time: a flood of new keys must not cost a walk over all of them each. */
  function shed(): void {
    for (const key of buckets.keys()) {
      if (buckets.size < MAX_KEYS * 0.9) break
      buckets.delete(key)
    }
  }

  return {
    wait: (key, rate, now) => seconds(refilled(key, rate, now).left, rate),
    take(key, rate, now) {
      const bucket = refilled(key, rate, now)
      const wait = seconds(bucket.left, rate)
      if (wait === 0) bucket.left -= 1
      if (!buckets.has(key) && buckets.size >= MAX_KEYS) shed()
      buckets.set(key, bucket)
      return wait
    },
  }
}

/** Throws `rate_limited` when there is nothing left. */
export function takeOrRefuse(rates: Rates, key: string, rate: Rate, now: number, message: string): void {
  const wait = rates.take(key, rate, now)
  if (wait > 0) throw new Problem('rate_limited', { message, retryAfterSeconds: wait })
}
