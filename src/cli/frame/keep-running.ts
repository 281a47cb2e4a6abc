import type { Log } from '../../log/log.ts'

export interface Running {
  readonly address: string
  /** Reports its own failures. */
  reload?(): Promise<void>
  close(): Promise<void>
}

export interface KeepRunningOptions {
  /** `stop` fires with the first signal: a start that waits for something gives up, and throws the reason. */
  start(stop: AbortSignal): Promise<Running>
  readonly log: Log
  /** Whether SIGHUP says that the terminal was closed. Without one it asks for a reload, where there is one. */
  readonly hasTerminal?: boolean
  readonly shutdownTimeoutMs: number
  /** Ends the process at once. */
  readonly exit: (code: number) => void
}

/** SIGHUP, with a terminal: it was closed, and nobody could end the process there any more. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Starts, waits for one of the signals, and closes. The exit code is 0 after an orderly close, and 1 if closing failed
 * or took longer than `shutdownTimeoutMs`; a second signal ends the process at once with 128 + its number. A signal
 * during the start takes effect after it, unless the start gives up. Rethrows errors of `start`.
 */
export async function keepRunning(options: KeepRunningOptions): Promise<number> {
  const { log, exit } = options
  const signal = Promise.withResolvers<NodeJS.Signals>()
  const stop = new AbortController()
  let force: NodeJS.Timeout | undefined
  let asked = false
  let reload = async () => {
    isLate = true
  }
  let isLate = false
  const onSignal = (name: NodeJS.Signals, number: number): void => {
    if (name === 'SIGHUP' && options.hasTerminal === false) {
      if (!asked) void reload()
      return
    }
    if (asked) {
      // The shell and the kernel each send a SIGHUP when a terminal closes; nobody is impatient.
      if (name !== 'SIGHUP') exit(128 + number)
      return
    }
    asked = true
    force = setTimeout(() => {
      log.error({ timeout_ms: options.shutdownTimeoutMs }, 'closing took too long; exiting now')
      exit(1)
    }, options.shutdownTimeoutMs)
    signal.resolve(name)
    stop.abort()
  }
  for (const name of SIGNALS) process.on(name, onSignal)
  try {
    const running = await options.start(stop.signal)
    log.info({ address: running.address }, 'listening')
    reload = async () => {
      await running.reload?.().catch((error: unknown) => log.error({ err: error }, 'reloading failed'))
    }
    // What was read at the start may be older than the signal.
    if (isLate) void reload()
    const name = await signal.promise
    log.info({ signal: name }, 'closing')
    await running.close()
    log.info({}, 'closed')
    return 0
  } catch (error) {
    if (!asked) throw error
    if (error === stop.signal.reason) {
      log.info({}, 'stopped before the start was complete')
      return 0
    }
    log.error({ err: error }, 'closing failed')
    return 1
  } finally {
    clearTimeout(force)
    for (const name of SIGNALS) process.off(name, onSignal)
  }
}
