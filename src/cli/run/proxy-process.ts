import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { MayflyError } from '../../client/errors.ts'
import { CliError, EXIT, type ExitCode, type Failure } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { ownCommand, wayFlags } from '../git/wrapper.ts'
import { type FromProxy, openChannel, type ToProxy } from './proxy-channel.ts'

type Start = Extract<ToProxy, { readonly start: unknown }>['start']
type Started = Extract<FromProxy, { readonly started: unknown }>['started']
type LeadingTo = Extract<FromProxy, { readonly leading: unknown }>['leading']
type Totals = Extract<FromProxy, { readonly closed: unknown }>['closed']

export interface ProxyProcessOptions {
  onIssued(issued: Extract<FromProxy, { readonly issued: unknown }>['issued']): void
  onEnded(end: Extract<FromProxy, { readonly ended: unknown }>['ended']): void
  note(text: string): void
  /** It has ended, and nobody told it to. */
  onLost(): void
}

/** The second process of a `mayfly run --proxy`. */
export interface ProxyProcess {
  /** Resolves with what the command gets for each credential. Throws `CliError`. */
  start(start: Start): Promise<Started>
  /** The variables that lead a command with this environment to the proxy. */
  leadTo(env: Context['env']): Promise<LeadingTo>
  beaten(agoMs: number): void
  /** Ends it; undefined: it was gone, or did not end in time and was killed. */
  close(): Promise<Totals | undefined>
}

/** More than the proxy takes to send what is still to be recorded. */
const CLOSE_MS = 8_000

/** Starts it outside our process group: what ends the command from a terminal must not end the proxy before the command. */
export function startProxyProcess(context: Context, options: ProxyProcessOptions): ProxyProcess {
  const { server, profile, ca, keychain = true } = context.globals
  // The same server and login.
  const [file = '', ...words] = [
    ...ownCommand(context),
    'run-proxy',
    ...wayFlags({ server, profile, caFile: ca, keychain }),
  ]
  const child = spawn(file, words, {
    cwd: context.cwd,
    env: { ...context.env },
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    detached: true,
  })
  const started = Promise.withResolvers<Started>()
  const leading = Promise.withResolvers<LeadingTo>()
  const closed = Promise.withResolvers<Totals | undefined>()
  let isClosing = false
  const lose = (error: unknown) => {
    started.reject(error)
    leading.reject(error)
    closed.resolve(undefined)
    if (!isClosing) options.onLost()
    isClosing = true
  }
  // Whoever waits hears of it.
  for (const one of [started.promise, leading.promise]) one.catch(() => {})
  child.on('error', () => lose(lost()))
  const channel = openChannel<ToProxy, FromProxy>(child.stdio[3] as Duplex, {
    onClose: () => lose(lost()),
    onMessage: (message) => {
      if ('started' in message) started.resolve(message.started)
      else if ('leading' in message) leading.resolve(message.leading)
      else if ('issued' in message) options.onIssued(message.issued)
      else if ('note' in message) options.note(message.note)
      else if ('ended' in message) options.onEnded(message.ended)
      else if ('closed' in message) closed.resolve(message.closed)
      else {
        isClosing = true
        lose('refused' in message ? new MayflyError(message.refused) : errorOf(message.failed))
      }
    },
  })
  return {
    start: (start) => {
      channel.send({ start })
      return started.promise
    },
    leadTo: (env) => {
      channel.send({ env })
      return leading.promise
    },
    beaten: (agoMs) => channel.send({ beaten: agoMs }),
    close: async () => {
      isClosing = true
      channel.send({ end: true })
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS)
      child.once('exit', () => clearTimeout(timer))
      if (hasEnded(child)) clearTimeout(timer)
      const totals = await closed.promise
      await channel.end()
      return totals
    },
  }
}

const hasEnded = ({ pid, exitCode, signalCode }: ChildProcess) =>
  pid === undefined || exitCode !== null || signalCode !== null

function lost(): CliError {
  return new CliError('proxy_lost', 'The proxy has ended before the command.', {
    hint: 'Nothing was started. Try again; its own message, if it had one, is above.',
  })
}

function errorOf({ code, message, hint, exitCode }: Failure): CliError {
  const exit: ExitCode = Object.values(EXIT).find((one) => one === exitCode) ?? EXIT.failed
  return new CliError(code, message, { exit, hint })
}
