/** Stops calls to an upstream that does not answer, or refuses our login, so that callers get an error at once. */
export interface Breaker {
  /** Seconds until the upstream may be called again; 0 when it may. */
  wait(): number
  /** Whether the next call, after a pause, decides for all others. */
  isTrying(): boolean
  /** Undefined while it is open. After a pause, the others wait for the outcome of the one call that was let through. */
  enter(): Pass | undefined
  /** The upstream works: somebody has looked. */
  close(): void
}

/** A call that was let through. It reports its end once. */
export interface Pass {
  /** The upstream answered, if only to refuse. */
  answered(): void
  failed(why: Failure): void
  /** It was not made after all, or says nothing about the upstream: the next caller may call. */
  cancel(): void
}

/** `login`: the upstream answers, and refuses Mayfly's login. */
export type Failure = 'outage' | 'login'

const FAILURES = 5
/** A restart is over in seconds. */
const OUTAGE_PAUSES = { firstMs: 1_000, longestMs: 15_000 }
/** A refused login stays so until somebody acts, and many upstreams lock an account that goes on trying. */
const LOGIN_PAUSES = { firstMs: 5_000, longestMs: 60_000 }
/** A trial that takes longer lets another one through. */
const TRIAL_MS = 5_000

/**
 * Opens after five failures in a row, of calls that began since its last change: what was under way then proves nothing. Pauses,
 * then lets one call through; the pause doubles when that one fails. An answer closes it.
 */
export function createBreaker(now: () => number): Breaker {
  const outage = createFuse(now, OUTAGE_PAUSES)
  const login = createFuse(now, LOGIN_PAUSES)
  const close = () => {
    outage.close()
    login.close()
  }
  const wait = () => Math.ceil(Math.max(outage.leftMs(), login.leftMs()) / 1_000)
  return {
    wait,
    isTrying: () => outage.isBlown() || login.isBlown(),
    close,
    enter() {
      if (wait() > 0) return undefined
      const [sent, known] = [outage.enter(), login.enter()]
      return {
        answered: close,
        failed(why) {
          if (why === 'login') outage.close()
          else login.cancel(known)
          const [fuse, era] = why === 'login' ? [login, known] : [outage, sent]
          fuse.fail(era)
        },
        cancel() {
          outage.cancel(sent)
          login.cancel(known)
        },
      }
    },
  }
}

/** Counts one sort of failure. An era begins with each change: a failure counts only in the era that its call began in. */
function createFuse(now: () => number, pauses: { readonly firstMs: number; readonly longestMs: number }) {
  let era = 0
  let failures = 0
  let pauseMs = 0
  let openUntil = 0
  let isTrial = false

  const isBlown = () => failures >= FAILURES
  function leftMs(): number {
    const left = openUntil - now()
    // Further ahead than any pause: the clock was set back.
    return !isBlown() || left <= 0 || left > pauses.longestMs ? 0 : left
  }
  function open(ms: number): void {
    era += 1
    isTrial = false
    pauseMs = Math.min(ms, pauses.longestMs)
    openUntil = now() + pauseMs
  }
  return {
    isBlown,
    leftMs,
    /** Only where nothing is left. Returns the era. */
    enter(): number {
      if (!isBlown()) return era
      if (!isTrial) era += 1
      isTrial = true
      openUntil = now() + TRIAL_MS
      return era
    },
    close(): void {
      era += 1
      failures = 0
      isTrial = false
    },
    fail(begun: number): void {
      if (begun !== era) return
      failures += 1
      if (isTrial) open(2 * pauseMs)
      else if (isBlown()) open(pauses.firstMs)
    },
    cancel(begun: number): void {
      if (isTrial && begun === era) openUntil = 0
    },
  }
}
