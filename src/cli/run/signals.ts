import { isatty } from 'node:tty'

const NAMES = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const
export type ForwardedSignal = (typeof NAMES)[number]
export type SignalHandler = (name: ForwardedSignal, number: number) => void

/** Routes these signals to the handler. Returns a function that restores the default behaviour. */
export function takeSignals(handler: SignalHandler): () => void {
  const listener = (name: NodeJS.Signals, number: number) => handler(name as ForwardedSignal, number)
  for (const name of NAMES) process.on(name, listener)
  return () => {
    for (const name of NAMES) process.off(name, listener)
  }
}

/** Whether we run at a terminal, which sends Ctrl-C to the child as well as to us. */
export function hasTerminal(): boolean {
  return isatty(0) || isatty(1) || isatty(2)
}
