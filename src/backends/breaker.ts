/** Stops calls to an upstream that does not answer, so that callers get an error at once. */
export interface Breaker {
  /** Seconds until the upstream may be called again; 0 when it may. */
  wait(): number
  /** As `wait`, for a caller that calls when it is 0: after a pause, the others wait for the outcome of that one call. */
  enter(): number
  /** Entered, but not called after all: the next caller may call. */
  cancel(): void
  succeeded(): void
  failed(): void
}

const FAILURES = 5
const FIRST_PAUSE_MS = 5_000
const LONGEST_PAUSE_MS = 60_000

/** Opens for 5 s after five failures in a row, doubling to 60 s; then lets one call through, or one every 5 s. */
export function createBreaker(now: () => number): Breaker {
  let failures = 0
  let openUntil = 0
  function wait(): number {
    const left = openUntil - now()
    // Further ahead than any pause: the clock was set back.
    if (failures < FAILURES || left <= 0 || left > LONGEST_PAUSE_MS) return 0
    return Math.ceil(left / 1_000)
  }
  return {
    wait,
    enter() {
      const left = wait()
      if (left === 0 && failures >= FAILURES) openUntil = now() + FIRST_PAUSE_MS
      return left
    },
    cancel() {
      openUntil = 0
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
