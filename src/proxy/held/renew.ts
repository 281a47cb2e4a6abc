import { pause } from '../../client/abort.ts'
import { MayflyError } from '../../client/errors.ts'
import type { ProxyLog } from '../types.ts'
import type { Holding } from './holding.ts'
import type { Issued } from './issue.ts'

export interface RenewOptions {
  /** Issues another one for the same request. */
  issue(): Promise<Issued>
  /** False once the run gets no other of this backend. Waits where that is not known yet. */
  mayRenew(): Promise<boolean>
  /** The run gets no other, but this one was issued in the meantime. */
  discard(issued: Issued): void
  onRenewed(issued: Issued): void
  readonly log: ProxyLog
}

const RENEW_AT = 2 / 3
/** However short the lives are that the server gives. */
const LEAST_INTERVAL_MS = 1_000
const LEAST_RETRY_MS = 500
const LONGEST_RETRY_MS = 30_000
/** Once the old one has expired. */
const RETRY_EXPIRED_MS = 2_000
/** Look at the clock, and at what is left, this often: timers do not advance while the machine sleeps. */
const LOOK_MS = 5_000

/** Renews a credential before it expires, until it may not be renewed or the signal aborts, which rejects. */
export async function keepRenewed(
  holding: Holding,
  options: RenewOptions,
  signal: AbortSignal,
): Promise<void> {
  const { issue, mayRenew, discard, onRenewed, log } = options
  let last = holding.first
  let isReported = false
  for (;;) {
    const due = Math.max(last.lifeMs * RENEW_AT, LEAST_INTERVAL_MS)
    // It has expired before its time where the clock of the server was set.
    for (let left = due - last.age(); left > 0 && holding.current() !== undefined; left = due - last.age())
      await pause(Math.min(left, LOOK_MS), signal)
    for (;;) {
      if (!(await mayRenew())) return
      try {
        const next = await issue()
        if (!(await mayRenew())) return discard(next)
        last = next
        onRenewed(next)
        if (isReported) log.warn(`renewed the credential of ${holding.name}.`)
        isReported = false
        break
      } catch (error) {
        signal.throwIfAborted()
        if (!isReported)
          log.warn(`the credential of ${holding.name} could not be renewed yet: ${wordsOf(error)} Retrying.`)
        isReported = true
        await pause(retryAfter(error, last), signal)
      }
    }
  }
}

function retryAfter(error: unknown, { lifeMs, age }: Issued): number {
  // The server records each refusal.
  if (error instanceof MayflyError && error.status >= 400 && error.status < 500)
    return Math.max(LONGEST_RETRY_MS, (error.retryAfterSeconds ?? 0) * 1_000)
  const left = lifeMs - age()
  return left <= 0 ? RETRY_EXPIRED_MS : Math.min(Math.max(left / 4, LEAST_RETRY_MS), LONGEST_RETRY_MS)
}

/** Messages of the client never hold a secret; others might. */
function wordsOf(error: unknown): string {
  const isKnown =
    error instanceof Error && ['MayflyError', 'UnreachableError', 'ProxyFailure'].includes(error.name)
  return isKnown ? error.message : 'something unforeseen failed.'
}
