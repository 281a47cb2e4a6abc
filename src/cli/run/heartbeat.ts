import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import { isGone, MayflyError } from '../../client/errors.ts'
import type { Run } from '../../client/wire.ts'
import { DeadlineError, unlessAborted, withDeadline } from '../../domain/abort.ts'
import { stopwatch } from '../../domain/stopwatch.ts'
import { failureOf } from '../frame/failure.ts'

export interface BeatOptions {
  readonly runs: Pick<Client['runs'], 'beat' | 'show' | 'list'>
  readonly id: string
  readonly intervalMs: number
  /** Epoch milliseconds. */
  now(): number
  note(text: string): void
  /** The server has answered a heartbeat that was sent so many milliseconds ago. */
  beaten?(agoMs: number): void
}

/** Why the run no longer lives. `refused`: the server has taken no heartbeat for longer than it lets a run live without. */
export interface RunEnd {
  readonly reason: Run['reason'] | 'refused'
  readonly endedBy: string | null
}

/** After a failed beat the next one starts after this share of an interval, so that more than two fit into one. */
const RETRY_SHARE = 0.45
const LONGEST_RETRY_MS = 10_000
/** A server that hangs does not delay the next try. */
const TIMEOUT_SHARE = 0.9
/** A run is dead this many intervals after its last heartbeat, at the latest (ADR 0068). */
const DEAD_AFTER = 4
/** Look at the clock this often: timers do not advance while the machine sleeps. */
const LOOK_MS = 20_000
const ASK_WHY_MS = 3_000

/**
 * Beats once an interval, and more than twice an interval while the server cannot be reached, until the signal aborts (then
 * it rejects) or the run has ended elsewhere. The first heartbeat is due one interval from now.
 */
export async function keepBeating(options: BeatOptions, signal: AbortSignal): Promise<RunEnd> {
  const { runs, id, intervalMs, now, note } = options
  const clocks = { now, monotonic: () => performance.now() }
  const retryMs = Math.min(intervalMs * RETRY_SHARE, LONGEST_RETRY_MS)
  let sinceGood = stopwatch(clocks)
  let isReported = false
  for (let since = sinceGood, wait = intervalMs; ; ) {
    for (let left = wait - since(); left > 0; left = wait - since())
      await pause(Math.min(left, LOOK_MS), signal)
    since = stopwatch(clocks)
    try {
      await within(retryMs * TIMEOUT_SHARE, signal, (either) => runs.beat(id, { signal: either }))
      options.beaten?.(since())
      if (isReported) note(`mayfly: the server takes the heartbeats of ${id} again.`)
      isReported = false
      sinceGood = since
      wait = intervalMs
    } catch (error) {
      signal.throwIfAborted()
      const isRefused = error instanceof MayflyError && [401, 403].includes(error.status)
      const isLate = sinceGood() > DEAD_AFTER * intervalMs
      const end = isRefused && isLate ? REFUSED : await endBy(error, options, signal)
      if (end !== undefined) return end
      if (isLate && !isReported) note(`mayfly: ${unheard(id, error)}`)
      isReported ||= isLate
      // The server records each refusal.
      wait = isRefused ? intervalMs : retryMs
    }
  }
}

const REFUSED: RunEnd = { reason: 'refused', endedBy: null }

/** Settles within this time in any case, also while a connection is being opened. */
function within<T>(ms: number, signal: AbortSignal, work: (either: AbortSignal) => Promise<T>): Promise<T> {
  const inTime = withDeadline(ms, (deadline) => work(AbortSignal.any([signal, deadline])))
  return unlessAborted(inTime, signal)
}

/** The end that this answer to a heartbeat tells of; undefined if the run may live. */
async function endBy(
  error: unknown,
  { runs, id }: BeatOptions,
  signal: AbortSignal,
): Promise<RunEnd | undefined> {
  if (!isGone(error)) return undefined
  try {
    const { reason, ended_by, state } = await within(ASK_WHY_MS, signal, (either) =>
      runs.show(id, { signal: either }),
    )
    return state === 'running' ? undefined : { reason, endedBy: ended_by }
  } catch {
    signal.throwIfAborted()
    // A node of an older version knows no runs at all, and says nothing about this one.
    if (error.code === 'not_found' && !(await knowsRuns(runs, signal))) return undefined
    return { reason: null, endedBy: null }
  }
}

async function knowsRuns(runs: BeatOptions['runs'], signal: AbortSignal): Promise<boolean> {
  try {
    await within(ASK_WHY_MS, signal, (either) => runs.list({}, { limit: 1, signal: either }).next())
    return true
  } catch {
    return false
  }
}

function unheard(id: string, error: unknown): string {
  const why = error instanceof DeadlineError ? 'It does not answer in time.' : failureOf(error).message
  return `the server has heard no heartbeat of ${id} for so long that its credentials may have ended. ${why} Retrying.`
}

const WHY: Readonly<Record<string, string>> = {
  completed: 'was ended by its agent',
  placeholder_misused: 'was ended, because a placeholder was sent where it does not belong',
  missed_heartbeat: 'was ended, because the server heard no heartbeat of it for too long',
  agent_ended: 'ended with its agent',
  expired: 'has reached the longest life of a run (runs.max)',
  refused: 'has ended, because the server refuses the login that its heartbeats come with',
}

/** How the run ended, in words. The events of a run do not say who ended it. */
export function describeEnd(
  id: string,
  { reason, endedBy }: Partial<RunEnd> & Pick<RunEnd, 'reason'>,
): string {
  if (reason === 'ended_by') return `${id} was ended by ${(endedBy ?? 'an administrator').slice(0, 100)}`
  return `${id} ${(reason === null ? undefined : WHY[reason]) ?? 'has ended'}`
}
