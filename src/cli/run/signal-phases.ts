import { isatty } from 'node:tty'
import { Interrupted } from '../frame/surroundings.ts'
import type { Child } from './child.ts'

/** The effect of a signal depends on the phase of the run: starting, running or ending. */
export interface SignalPhases {
  /** Requests may be under way from now on. `hangUp` is called if they outlast a signal to stop. */
  onHangUp(hangUp: () => void): void
  /** Throws `Interrupted` if a signal asked us to stop before the child was started. */
  throwIfInterrupted(): void
  /** The credentials have ended: the child gets this signal, and SIGKILL if it outlasts the grace period. */
  stop(name: NodeJS.Signals): void
  /** Forward signals to the child from now on. */
  running(child: Pick<Child, 'kill'>): void
  /** The child has exited. The first signal is ignored, because it may have been meant for the child. */
  ending(): void
  /** Aborted by the second signal of the ending phase. */
  readonly hardStop: AbortSignal
  close(): void
}

const HANG_UP_MS = 3_000
const STOP_SIGNALS: readonly ForwardedSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

type Phase = 'starting' | 'running' | 'ending'

export function createSignalPhases(graceMs: number, note: (text: string) => void): SignalPhases {
  const atTerminal = hasTerminal()
  const hard = new AbortController()
  const timers: NodeJS.Timeout[] = []
  let phase: Phase = 'starting'
  let hangUp: (() => void) | undefined
  let first: { name: ForwardedSignal; number: number } | undefined
  let child: Pick<Child, 'kill'> | undefined
  let stopName: NodeJS.Signals | undefined
  let late = 0

  const onStart = (name: ForwardedSignal, number: number) => {
    // Nothing has been requested yet.
    if (hangUp === undefined) process.exit(128 + number)
    if (first !== undefined) hangUp()
    else timers.push(setTimeout(hangUp, HANG_UP_MS))
    first ??= { name, number }
  }
  const onRun = (name: ForwardedSignal) => {
    // The terminal has sent it to the child already; many programs treat a second one differently.
    if (atTerminal && (name === 'SIGINT' || name === 'SIGQUIT')) return
    child?.kill(name)
    if (name !== 'SIGTERM' && !(name === 'SIGHUP' && atTerminal)) return
    // If the terminal still exists, SIGHUP was a message, such as "reload your configuration".
    killLater(() => name !== 'SIGHUP' || !hasTerminal())
  }
  const killLater = (isMeant: () => boolean = () => true) => {
    const kill = () => {
      if (isMeant() && child?.kill('SIGKILL') === true)
        note(`mayfly: the command did not exit within ${graceMs / 1_000} s and was killed.`)
    }
    timers.push(setTimeout(kill, graceMs))
  }
  const onStop = (name: NodeJS.Signals) => {
    child?.kill(name)
    killLater()
  }
  const stop = takeSignals((name, number) => {
    if (phase === 'running') onRun(name)
    else if (!STOP_SIGNALS.includes(name)) return
    else if (phase === 'starting') onStart(name, number)
    else {
      late += 1
      if (late > 1) hard.abort(new Interrupted(number))
    }
  })
  const clear = () => {
    for (const timer of timers.splice(0)) clearTimeout(timer)
  }
  return {
    hardStop: hard.signal,
    onHangUp: (call) => {
      hangUp = call
    },
    throwIfInterrupted: () => {
      if (first !== undefined) throw new Interrupted(first.number)
    },
    running: (started) => {
      clear()
      child = started
      phase = 'running'
      // The signal arrived while the child was being started.
      if (first !== undefined) onRun(first.name)
      if (stopName !== undefined) onStop(stopName)
    },
    stop: (name) => {
      stopName = name
      if (phase === 'running') onStop(name)
    },
    ending: () => {
      clear()
      phase = 'ending'
    },
    close: () => {
      clear()
      stop()
    },
  }
}

const NAMES = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
type ForwardedSignal = (typeof NAMES)[number]
type SignalHandler = (name: ForwardedSignal, number: number) => void

/** Routes these signals to the handler. Returns a function that restores the default behaviour. */
export function takeSignals(handler: SignalHandler): () => void {
  const listener = (name: NodeJS.Signals, number: number) => handler(name as ForwardedSignal, number)
  for (const name of NAMES) process.on(name, listener)
  return () => {
    for (const name of NAMES) process.off(name, listener)
  }
}

/** Whether we run at a terminal, which sends Ctrl-C to the child as well as to us. */
function hasTerminal(): boolean {
  return isatty(0) || isatty(1) || isatty(2)
}
