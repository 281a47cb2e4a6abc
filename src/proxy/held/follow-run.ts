import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import { isGone, MayflyError } from '../../client/errors.ts'
import type { RunState } from '../../client/wire.ts'
import { withDeadline } from '../../domain/abort.ts'
import type { Clocks } from '../../domain/stopwatch.ts'
import { ProxyFailure } from '../failure.ts'
import type { SignOfLife } from './sign-of-life.ts'

export interface FollowRunOptions {
  readonly runs: Pick<Client['runs'], 'events'>
  readonly id: string
  readonly sign: SignOfLife
  readonly clocks: Pick<Clocks, 'monotonic'>
  /** `at`: as of when the credentials of the last state are all that live, by the clock of the server. */
  onState(state: RunState): void
  onAlive(at: number): void
  /** The server does not know the run any more. */
  onGone(): void
}

const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 2_000
/** A connection that lasted longer has worked. */
const WORKED_MS = 2_000

/**
 * Follows the events of a run over as many connections as it takes, until the run has ended or the signal aborts. Resolves with the
 * first state; rejects where the first connection fails, or the run has ended before.
 */
export function followRun(options: FollowRunOptions, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let hasBegun = false
    const loop = async () => {
      for (let failures = 0; ; failures += 1) {
        const began = options.clocks.monotonic()
        try {
          const isOver = await followOnce(options, signal, () => {
            hasBegun = true
            resolve()
          })
          if (isOver) return hasBegun ? undefined : reject(hasEnded())
        } catch (error) {
          if (signal.aborted) return
          if (!hasBegun) return reject(asFailure(error))
          if (isGone(error)) return options.onGone()
          if (error instanceof MayflyError && [401, 403].includes(error.status)) options.sign.refused()
        }
        if (options.clocks.monotonic() - began > WORKED_MS) failures = 0
        const wait = failures === 0 ? 0 : Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures)
        await pause(wait * (0.5 + Math.random() / 2), signal)
      }
    }
    // The signal ends the last pause.
    loop().catch(reject)
  })
}

/** Returns whether the run has ended. */
async function followOnce(
  options: FollowRunOptions,
  signal: AbortSignal,
  onFirst: () => void,
): Promise<boolean> {
  const { runs, id, sign, onState, onAlive } = options
  const connection = new AbortController()
  const events = runs.events(id, { signal: AbortSignal.any([signal, connection.signal]) })
  try {
    for (let isFirst = true; ; isFirst = false) {
      // After such a silence another connection is opened, perhaps to another node.
      const { done, value: event } = await withDeadline(sign.silentMs, () => events.next())
      if (done === true) return false
      if (isFirst) sign.connected()
      // What comes after such a silence may have waited in our own buffers: a new connection says what is true now.
      else if (!sign.heard()) return false
      if (event.kind === 'alive') onAlive(Date.parse(event.at))
      else {
        onState(event)
        if (event.run.state === 'ended') return true
        onFirst()
      }
    }
  } finally {
    connection.abort()
    void events.return().catch(() => {})
  }
}

function hasEnded(): ProxyFailure {
  return new ProxyFailure(
    'run_ended',
    'The run has ended.',
    'Nothing is served for it any more; begin another.',
  )
}

function asFailure(error: unknown): unknown {
  if (!isGone(error)) return error
  return new ProxyFailure(
    'no_events',
    'The server does not tell which credentials of a run live, so that a proxy could not end with them.',
    'Use a server of this version or later.',
  )
}
