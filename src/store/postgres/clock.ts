/** One reading of the database's clock (`at`), between two readings of our monotonic clock. */
export interface ClockAnswer {
  readonly at: number
  readonly sent: number
  readonly received: number
}

export interface DatabaseClock {
  /** Epoch ms. Never goes back, except by an accepted step. */
  now(): number
  learn(answer: ClockAnswer): void
  /** Whether two answers have agreed, so that `now` can be believed. */
  isSet(): boolean
}

/** A larger difference from the expected time is a step, not drift. All in ms. */
const STEP_MS = 1_000
/** A step is accepted once every answer has agreed for this long. */
const CONFIRM_MS = 1_000

/**
 * The database's clock, carried on by our monotonic clock between answers, so that setting our own wall clock changes
 * nothing. An answer that took long says little, and one that fits our expectation corrects us by no more than it must. No
 * single answer makes a step. `onStep` gets the size of an accepted step, in ms; negative when the clock was set back.
 */
export function createDatabaseClock(
  onStep: (ms: number) => void,
  monotonic: () => number = () => performance.now(),
): DatabaseClock {
  /** The database's time when our monotonic clock read zero. */
  let origin: number | undefined
  let candidate: { readonly origin: number; readonly since: number } | undefined
  let latest = 0

  function step(to: number): void {
    if (origin !== undefined) onStep(Math.round(to - origin))
    origin = to
    latest = 0
    candidate = undefined
  }

  return {
    now: () => {
      latest = Math.max(latest, Math.round(monotonic() + (origin ?? 0)))
      return latest
    },
    isSet: () => origin !== undefined,
    learn: ({ at, sent, received }) => {
      const nearest = (to: number) => Math.min(Math.max(to, at - received), at - sent)
      const fits = (to: number) => Math.abs(nearest(to) - to) <= STEP_MS
      if (origin !== undefined && fits(origin)) {
        origin = nearest(origin)
        candidate = undefined
      } else if (candidate === undefined || !fits(candidate.origin)) {
        candidate = { origin: at - (sent + received) / 2, since: received }
      } else if (origin === undefined || received - candidate.since >= CONFIRM_MS) {
        step(nearest(candidate.origin))
      }
    },
  }
}
