/** Stops asking an upstream that does not answer, so that callers are told at once. */
export interface Breaker {
  /** Seconds until it may be asked again; 0 when it may. */
  wait(): number
  /** As `wait`, by whoever asks when it is 0: after a pause the others wait for what comes of that call. */
  enter(): number
  succeeded(): void
  failed(): void
}

const FAILURES = 5
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 60_000

/** After five failures in a row it opens for 5 s, doubling to 60 s; then one call is let through, or one each 5 s. */
export function createBreaker(now: () => number): Breaker {
  let failures = 0
  let openUntil = 0
  function wait(): number {
    const left = openUntil - now()
    if (failures < FAILURES || left <= 0) return 0
    return Math.ceil(left / 1_000)
  }
  return {
    wait,
    enter() {
      const left = wait()
      if (left === 0 && failures >= FAILURES) openUntil = now() + FIRST_PAUSE_MS
      return left
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
