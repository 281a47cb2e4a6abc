import { setImmediate } from 'node:timers/promises'
import { CliError, failureOf, usage } from '../frame/failure.ts'
import { jsonText, oneLine } from '../frame/terminal-text.ts'
import type { Context } from '../frame/verb.ts'
import { openAgentSession, type Session } from '../session/open.ts'
import { findCommand, NOT_EXECUTABLE, NOT_FOUND } from './find-command.ts'
import { type IssuedCredentials, type Outcome, trackIssued } from './issued-credentials.ts'
import { type OpenOptions, type OpenRun, openRun, type RunWish } from './open-run.ts'
import { openPrivateDirectory, type PrivateDirectory } from './private-directory.ts'
import type { Redaction } from './redact.ts'
import { createSignalPhases, type SignalPhases } from './signal-phases.ts'
import { whenSent } from './when-sent.ts'

export interface Command {
  /** As typed. */
  readonly name: string
  readonly args: readonly string[]
  /** From SIGTERM, or the loss of the terminal, to SIGKILL. */
  readonly graceMs: number
  /** Whether a second process revokes if this one is killed. */
  readonly isGuarded?: boolean
  /** Undefined: without a run of its own. */
  readonly run?: RunWish | undefined
  readonly redaction?: Redaction | undefined
}

/** Everything that a command's credentials can be prepared with. All of it ends with the command. */
export interface Preparation {
  readonly session: Session
  readonly issued: IssuedCredentials
  /** Opened by the first call, removed at the end. */
  openDirectory(): Promise<PrivateDirectory>
  /** Runs `step` once the command has exited, before anything is revoked; also if the command never started. */
  onEnd(step: () => Promise<unknown>): void
  /** Aborts when the preparation is to be given up. */
  readonly signal: AbortSignal
  /** Undefined where the command has no run of its own. */
  readonly run: Promise<OpenRun | undefined>
  /** The credentials have ended, for this reason: the command is told, and gets the signal for that. The first reason counts. */
  stopCommand(why: string): void
  /** What the report says of a proxy. `deadMs`: everything has ended so long after the command; undefined: it has not. */
  onReport(of: (deadMs: number | undefined) => ProxyReport): void
  note(text: string): void
}

/** What a proxy did for a command. */
export interface ProxyReport {
  readonly text: string
  /** For `--json`. */
  readonly facts: Readonly<Record<string, number>>
}

/** Obtains the credentials and returns the environment of the command. */
export type Prepare = (preparation: Preparation) => Promise<Context['env']>

/** How long to wait at the end for requests that are still under way. */
const HANG_UP_MS = 3_000

/**
 * Prepares the credentials, runs the command, and revokes every credential however the command ends. Returns the exit
 * code. Throws the error that prevented the start.
 */
export async function supervise(context: Context, command: Command, prepare: Prepare): Promise<number> {
  const file = await findCommand(command.name, { path: context.env['PATH'], cwd: context.cwd })
  if (typeof file === 'number') return report(context, notFound(command.name, file), file)
  const note = (text: string) => context.out.note(oneLine(text))
  const signals = createSignalPhases(command.graceMs, note)
  try {
    return await runAndRevoke(context, { ...command, file }, prepare, signals, note)
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error
    return report(context, error, error.shellCode)
  } finally {
    signals.close()
  }
}

async function runAndRevoke(
  context: Context,
  command: Command & { readonly file: string },
  prepare: Prepare,
  signals: SignalPhases,
  note: Preparation['note'],
): Promise<number> {
  const session = await openAgentSession(context)
  const guard = command.isGuarded === true ? (await import('./guard.ts')).startGuard(context) : undefined
  const starting = new AbortController()
  const stopCommand = stopperOf(command.run?.onEnd ?? 'SIGTERM', signals, note)
  const onEnded = (text: string) => stopCommand(text)
  const opening = openRunOf(context, command.run, { session, signal: starting.signal, note, onEnded })
  const issued = trackIssued(session.client, context.now, guard, opening)
  signals.onHangUp(() => {
    starting.abort(new Error('hung up'))
    issued.hangUp()
  })
  let directory: Promise<PrivateDirectory> | undefined
  const openDirectory = () => {
    directory ??= openPrivateDirectory(context).then(async (opened) => {
      await guard?.({ directory: opened.path })
      return opened
    })
    return directory
  }
  const endSteps: (() => Promise<unknown>)[] = []
  const onEnd = (step: () => Promise<unknown>) => endSteps.push(step)
  let reportOf: ((deadMs: number | undefined) => ProxyReport) | undefined
  const onReport: Preparation['onReport'] = (of) => {
    reportOf = of
  }
  const preparation = {
    ...{ session, issued, openDirectory, onEnd, note, stopCommand, onReport },
    signal: starting.signal,
    run: opening,
  }
  const preparing = () => prepare(preparation)

  const [outcome] = await Promise.allSettled([runCommand(context, command, preparing, signals, opening)])
  const end = outcome.status === 'fulfilled' ? outcome.value : undefined
  const endedAt = performance.now()
  signals.ending()
  void opening.then((open) => open?.stopBeating()).catch(() => {})

  // 1. Stop issuing: nothing may be issued after the revocation below.
  const stopped = await Promise.allSettled([issued.settle(HANG_UP_MS), ...endSteps.map((step) => step())])
  for (const one of stopped) if (one.status === 'rejected') note(`mayfly: ${failureOf(one.reason).message}`)
  // 2. Remove the files.
  const opened = await directory?.catch(() => undefined)
  await opened?.remove().catch(() => note(`mayfly: Cannot remove ${opened.path}.`))
  // 3. Revoke, then leave the rest to the guard.
  const isSettled = await settleAll(
    context,
    issued,
    signals.hardStop,
    end,
    await opening.catch(() => undefined),
    reportOf && ((isDead) => reportOf?.(isDead ? performance.now() - endedAt : undefined)),
  )
  await guard?.({ settled: isSettled && issued.unknown().length === 0 })

  if (outcome.status === 'fulfilled') return isSettled ? outcome.value.code : outcome.value.code || 1
  // It may have failed because a signal made us hang up.
  signals.throwIfInterrupted()
  throw outcome.reason
}

/** The run begins while the command goes on; what is issued waits for it. */
function openRunOf(
  context: Context,
  wish: RunWish | undefined,
  options: OpenOptions,
): Promise<OpenRun | undefined> {
  if (wish === undefined) return Promise.resolve(undefined)
  const opening = openRun(context, wish, options)
  // Whoever waits for it hears of a failure.
  opening.catch(() => {})
  return opening
}

function stopperOf(signal: NodeJS.Signals, signals: SignalPhases, note: Preparation['note']) {
  let isStopped = false
  return (why: string): void => {
    if (isStopped) return
    isStopped = true
    note(`mayfly: ${why}. Its credentials no longer work; the command gets ${signal}.`)
    signals.stop(signal)
  }
}

async function runCommand(
  context: Context,
  { name, file, args, redaction, run: wish }: Command & { readonly file: string },
  prepare: () => ReturnType<Prepare>,
  signals: SignalPhases,
  opening: Promise<OpenRun | undefined>,
): Promise<CommandEnd> {
  signals.throwIfInterrupted()
  if (wish !== undefined) await whenSent()
  const loading = import('./child.ts')
  const env = await prepare()
  const open = await opening
  const { startChild } = await loading
  // Let a signal that arrived with the last reply be handled first.
  await setImmediate()
  signals.throwIfInterrupted()
  open?.requireLiving()
  const options = { command: name, file, args, cwd: context.cwd, env, redaction, streams: context }
  const child = await startChild(options).catch((error: unknown) => {
    throw new StartFailure(name, error)
  })
  signals.running(child)
  return { code: await child.ended, drained: child.drained }
}

const REVOKE_MS = 15_000

/** How the command ended, if it ran. */
export interface CommandEnd {
  readonly code: number
  /** Settles once all its output has been passed on, so that our report comes last. */
  readonly drained: Promise<unknown>
}

/**
 * Revokes every credential of the run and reports those left over, with `--json` all of them. Returns false when any
 * is left.
 */
export async function settleAll(
  context: Pick<Context, 'out' | 'stderr'>,
  issued: IssuedCredentials,
  hardStop: AbortSignal,
  end: CommandEnd | undefined,
  run: Pick<OpenRun, 'id'> | undefined,
  reportOf?: (isDead: boolean) => ProxyReport | undefined,
): Promise<boolean> {
  const failure = await issued.revokeAll(AbortSignal.any([hardStop, AbortSignal.timeout(REVOKE_MS)]))
  await end?.drained
  const outcomes = issued.outcomes()
  const left = outcomes.filter(({ revoked }) => !revoked)
  if (left.length > 0) context.out.note(oneLine(leftOver(left, failure, run?.id)))
  for (const backend of issued.unknown())
    context.out.note(
      oneLine(
        `mayfly: No reply to a request for a credential of ${backend}: if the server issued one, it ${run === undefined ? 'expires on its own' : `ends with ${run.id}, which misses its heartbeats now`}.`,
      ),
    )
  // Without a command there is nothing that a proxy did.
  const proxy = end && reportOf?.(left.length === 0)
  if (proxy !== undefined) context.out.note(oneLine(`mayfly: ${proxy.text}`))
  if (context.out.isJson && end !== undefined) {
    const exit_code = left.length > 0 ? end.code || 1 : end.code
    const report = {
      ...{ run: run?.id ?? null, credentials: outcomes, exit_code },
      ...(proxy !== undefined && { proxy: proxy.facts }),
    }
    context.stderr.write(`${jsonText(report)}\n`)
  }
  return left.length === 0
}

function leftOver(left: readonly Outcome[], failure: unknown, run: string | undefined): string {
  const all = left.map(({ id, backend, expires_at }) => `${id} of ${backend}, which expires at ${expires_at}`)
  const what = left.length === 1 ? 'One credential' : `${left.length} credentials`
  const next =
    run === undefined
      ? `Try: mayfly revoke ${left.map(({ id }) => id).join(' ')}`
      : `The server ends ${left.length === 1 ? 'it' : 'them'} when it misses the heartbeats of ${run}. Sooner: mayfly runs end ${run}`
  return `mayfly: ${what} could not be revoked: ${all.join('; ')}. ${reasonOf(failure)} ${next}`
}

function reasonOf(failure: unknown): string {
  const name = failure instanceof Error ? failure.name : ''
  if (name === 'Interrupted') return 'Revoking was interrupted.'
  if (name === 'TimeoutError' || name === 'AbortError') return 'The server did not answer in time.'
  return failureOf(failure).message
}

const notFound = (command: string, code: number) =>
  code === NOT_FOUND
    ? usage(`${command}: command not found.`, 'No credential was issued.')
    : usage(`${command}: not executable.`, 'No credential was issued.')

/** Reports like the frame, but with a shell's exit code. */
function report({ out, stderr }: Context, { code, message, hint }: CliError, exitCode: number): number {
  if (out.isJson) stderr.write(`${jsonText({ error: { code, message, hint } })}\n`)
  else out.note(oneLine(`mayfly: ${message} ${hint ?? ''}`.trim()))
  return exitCode
}

/** The system refused to start the command. */
class StartFailure extends CliError {
  readonly shellCode: number

  constructor(command: string, cause: unknown) {
    const code = (cause as { code?: string }).code
    const why = WHY[code ?? ''] ?? `the system refused it (${code ?? 'unknown'})`
    super('not_started', `Cannot start ${command}: ${why}.`, { hint: 'Its credentials were revoked.' })
    this.shellCode = code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE
  }
}

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'the interpreter named in its first line does not exist',
  EACCES: 'permission denied',
  E2BIG: 'its arguments and environment are too large',
  ENOEXEC: 'it is not a program',
  EAGAIN: 'too many processes',
  ENOMEM: 'out of memory',
}
