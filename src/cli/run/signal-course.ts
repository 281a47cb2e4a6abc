import { Interrupted } from '../frame/surroundings.ts'
import type { Child } from './child.ts'
import { type ForwardedSignal, hasTerminal, takeSignals } from './signals.ts'

/** What a signal does depends on how far the run has come. */
export interface SignalCourse {
  /** From now on something is being issued: `hangUp` is called when we were asked to end and it takes too long. */
  onHangUp(hangUp: () => void): void
  /** Throws `Interrupted` when we were asked to end before the child was there. */
  throwIfInterrupted(): void
  /** From now on signals are for the child. */
  running(child: Pick<Child, 'kill'>): void
  /** The child is gone: the first signal is let pass, because it may have been meant for the child. */
  ending(): void
  /** Aborted by the second one. */
  readonly hardStop: AbortSignal
  close(): void
}

const HANG_UP_MS = 3_000
const ASKS_TO_END: readonly ForwardedSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

type Phase = 'starting' | 'running' | 'ending'

export function createSignalCourse(graceMs: number, note: (text: string) => void): SignalCourse {
  const atTerminal = hasTerminal()
  const hard = new AbortController()
  const timers: NodeJS.Timeout[] = []
  let phase: Phase = 'starting'
  let hangUp: (() => void) | undefined
  let first: { name: ForwardedSignal; number: number } | undefined
  let child: Pick<Child, 'kill'> | undefined
  let late = 0

  const onStart = (name: ForwardedSignal, number: number) => {
    // Nothing has been asked for yet.
    if (hangUp === undefined) process.exit(128 + number)
    if (first !== undefined) hangUp()
    else timers.push(setTimeout(hangUp, HANG_UP_MS))
    first ??= { name, number }
  }
  const onRun = (name: ForwardedSignal) => {
    // The terminal has given it to the child already; twice would mean something else to many programs.
    if (atTerminal && (name === 'SIGINT' || name === 'SIGQUIT')) return
    child?.kill(name)
    if (name !== 'SIGTERM' && !(name === 'SIGHUP' && atTerminal)) return
    timers.push(
      setTimeout(() => {
        // The terminal is still there: SIGHUP was a message, such as to read a configuration again.
        if (name === 'SIGHUP' && hasTerminal()) return
        if (child?.kill('SIGKILL') === true)
          note(`mayfly: the command did not end in ${graceMs / 1_000} s and was killed.`)
      }, graceMs),
    )
  }
  const stop = takeSignals((name, number) => {
    if (phase === 'running') onRun(name)
    else if (!ASKS_TO_END.includes(name)) return
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
      // It came while the child was being started.
      if (first !== undefined) onRun(first.name)
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
