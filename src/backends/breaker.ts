/** Stops asking an upstream that does not answer, so that callers are told at once. */
export interface Breaker {
  /** Seconds until it may be asked again; 0 when it may. */
  wait(): number
  succeeded(): void
  failed(): void
}

const FAILURES = 5
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 60_000

/** After five failures in a row it opens for 5 s, doubling to 60 s; then one call is let through. */
export function createBreaker(now: () => number): Breaker {
  let failures = 0
  let openUntil = 0
  return {
    wait() {
      const left = openUntil - now()
      if (failures < FAILURES || left <= 0) return 0
      return Math.ceil(left / 1_000)
    },
    succeeded() {
      failures = 0
      openUntil = 0
    },
    failed() {
      failures += 1
      if (failures >= FAILURES)
        openUntil =
          now() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - FAILURES, 10))
    },
  }
}
