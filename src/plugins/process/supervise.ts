import type { Host } from '../../backends/kind.ts'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, unavailable } from '../../domain/backend-error.ts'
import type { PluginProcess } from './process.ts'

/** Something that a process of a plugin offers, such as a client. */
export interface Running<T> {
  readonly process: PluginProcess
  readonly value: T
}

export interface Supervised<T> {
  /** The running process, or a new one where the last has ended. Throws `BackendError`. */
  get(signal: AbortSignal): Promise<Running<T>>
  close(): Promise<void>
}

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** A process that ran this long begins again without a pause. */
const STEADY_MS = 60_000

interface Supervision<T> {
  readonly name: string
  /** Starts a process and makes it ready, unless `signal` fires before. */
  start(signal: AbortSignal): Promise<Running<T>>
  onEnd(how: string): void
  now(): number
}

/** Keeps one process: the next call starts another where it has ended, at most so often. */
function supervise<T>({ name, start, onEnd, now }: Supervision<T>): Supervised<T> {
  let current: Promise<Running<T>> | undefined
  const closing = new AbortController()
  let ends = 0
  let pauseUntil = 0

  function ended(since: number): void {
    if (now() - since >= STEADY_MS) ends = 0
    // The first restart follows at once: one crash is an accident.
    if (ends > 0)
      pauseUntil = now() + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(ends - 1, 10))
    ends += 1
  }

  async function begin(): Promise<Running<T>> {
    const since = now()
    try {
      const running = await start(closing.signal)
      void running.process.exited.then((how) => {
        current = undefined
        if (closing.signal.aborted) return
        ended(since)
        onEnd(how)
      })
      return running
    } catch (error) {
      current = undefined
      ended(since)
      throw error
    }
  }

  return {
    async get(signal) {
      if (closing.signal.aborted) throw unavailable(`The plugin ${name} was stopped.`)
      if (current === undefined && pauseUntil > now()) {
        throw unavailable(`The plugin ${name} ended and is about to be started again.`)
      }
      current ??= begin()
      return unlessLate(current, signal, name)
    },
    async close() {
      closing.abort()
      const running = await current?.catch(() => undefined)
      await running?.process.stop()
    },
  }
}

interface Watched {
  readonly name: string
  readonly log: Host['log']
  onEnd(how: string): void
}

/** How long the first process may take until it has its configuration. */
const OPEN_MS = 60_000

/**
 * Keeps one process of a plugin, and returns once the first has its configuration: `connect` starts one, and `configure` makes it
 * ready. One that cannot be made ready is stopped. Throws `BackendError`.
 */
export async function openSupervised<S extends { readonly process: PluginProcess }, T>(
  { name, log, onEnd }: Watched,
  connect: (signal: AbortSignal) => Promise<S>,
  configure: (started: S, signal: AbortSignal) => Promise<T>,
): Promise<Supervised<T>> {
  const supervised = supervise({
    name,
    now: () => performance.now(),
    onEnd: (how) => {
      log.warn({ plugin: name, how }, 'The process of a plugin has ended.')
      onEnd(how)
    },
    start: async (signal) => {
      const started = await connect(signal)
      try {
        return { process: started.process, value: await configure(started, signal) }
      } catch (error) {
        await started.process.stop()
        throw error
      }
    },
  })
  try {
    await supervised.get(AbortSignal.timeout(OPEN_MS))
    return supervised
  } catch (error) {
    await supervised.close()
    throw error
  }
}

/** The process starts for all that wait, so no caller's own signal ends that. */
export function unlessLate<T>(work: Promise<T>, signal: AbortSignal, name: string): Promise<T> {
  return unlessAborted(work, signal).catch((error: unknown) => {
    if (error !== signal.reason) throw error
    throw new BackendError('timeout', `The plugin ${name} did not answer in time.`)
  })
}
