import { isatty } from 'node:tty'

const NAMES = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
export type ForwardedSignal = (typeof NAMES)[number]
export type SignalHandler = (name: ForwardedSignal, number: number) => void

/** From now on these signals do nothing but call the handler. Returns what takes that back. */
export function takeSignals(handler: SignalHandler): () => void {
  const listener = (name: NodeJS.Signals, number: number) => handler(name as ForwardedSignal, number)
  for (const name of NAMES) process.on(name, listener)
  return () => {
    for (const name of NAMES) process.off(name, listener)
  }
}

/** Whether we stand at a terminal, which gives Ctrl-C to the child as well as to us. */
export function hasTerminal(): boolean {
  return isatty(0) || isatty(1) || isatty(2)
}
