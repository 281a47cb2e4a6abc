import type { CallOptions } from '../../client/client.ts'
import { MayflyError } from '../../client/errors.ts'
import type { Run } from '../../client/wire.ts'
import { parseDuration } from '../../domain/duration.ts'
import { MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from '../../domain/limits.ts'
import { stopwatch } from '../../domain/stopwatch.ts'
import { CliError, failureOf } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import type { Session } from '../session/open.ts'
import type { RunEnd } from './heartbeat.ts'
import { whenSent } from './when-sent.ts'

/** What the run of a command is to be. */
export interface RunWish {
  readonly purpose?: string | undefined
  /** A duration as it was written. */
  readonly heartbeat?: string | undefined
  /** What the command gets when the run has ended elsewhere. */
  readonly onEnd: NodeJS.Signals
  /** Whether to say that there is no run, and why. */
  readonly isVerbose: boolean
}

/** A run that beats. What is issued with its id ends with it. */
export interface OpenRun {
  readonly id: string
  readonly heartbeatMs: number
  /** Milliseconds since the last heartbeat was sent that the server has answered. */
  sinceBeat(): number
  /** Hears of each heartbeat that the server answers, and how many milliseconds ago it was sent. */
  onBeaten(listener: (agoMs: number) => void): void
  /** Throws `CliError` once the run has ended elsewhere. */
  requireLiving(): void
  /** The command is over. */
  stopBeating(): void
  /** Ends the run on the server, with everything that was issued for it. Throws as the client does. */
  end(options: CallOptions): Promise<unknown>
}

export interface OpenOptions {
  readonly session: Session
  readonly signal: AbortSignal
  /** The run has ended elsewhere; the text says how. */
  onEnded(text: string, end: RunEnd): void
  note(text: string): void
}

/**
 * Begins a run and beats for it from now on. Undefined where there is none: on a server of an older version, and for a
 * login that is itself of a run, with which everything ends anyway. Throws as the client does.
 */
export async function openRun(
  { now }: Pick<Context, 'now'>,
  { purpose, heartbeat, isVerbose }: RunWish,
  { session, signal, onEnded, note }: OpenOptions,
): Promise<OpenRun | undefined> {
  const without = (text: string) => {
    if (isVerbose) note(`mayfly: ${text}`)
    return undefined
  }
  if ((await runOfLogin(session)) !== undefined)
    return without('the login is of a run, with which all credentials end.')
  const { runs } = session.client
  const beats = createBeats(now)
  const beginning = runs.start({ purpose, heartbeat }, { signal }).catch((error: unknown) => {
    if (isUnknownRoute(error)) return undefined
    throw error
  })
  const loading = whenSent().then(() => import('./heartbeat.ts'))
  const [begun, { describeEnd, keepBeating }] = await Promise.all([beginning, loading])
  if (begun === undefined)
    return without('the server has no runs: the credentials of a command that is killed end at their expiry.')
  const { id, intervalMs } = readRun(begun)
  const over = new AbortController()
  let ended: string | undefined
  keepBeating({ runs, id, intervalMs, now, note, beaten: beats.beaten }, over.signal).then(
    (end) => {
      ended = describeEnd(id, end)
      onEnded(ended, end)
    },
    (error: unknown) => {
      if (!over.signal.aborted) note(`mayfly: ${failureOf(error).message}`)
    },
  )
  return {
    id,
    heartbeatMs: intervalMs,
    sinceBeat: beats.sinceBeat,
    onBeaten: beats.onBeaten,
    requireLiving: () => {
      if (ended !== undefined) throw new CliError('run_ended', `${ended}.`, { hint: 'Nothing was started.' })
    },
    stopBeating: () => over.abort(new Error('over')),
    end: (options) => runs.end(id, options),
  }
}

/**
 * The run that somebody else began and keeps alive: the one that was named, or that of the login. Throws as the client does, and
 * `CliError` where there is none.
 */
export async function runOfOthers(
  session: Session,
  { named, signal }: { readonly named?: string | undefined; readonly signal: AbortSignal },
): Promise<Pick<OpenRun, 'id' | 'heartbeatMs'>> {
  const id = named ?? (await runOfLogin(session))
  if (id === undefined) throw noRuns()
  const { heartbeat } = await session.client.runs.show(id, { signal })
  return { id, heartbeatMs: parseDuration(heartbeat) ?? MIN_HEARTBEAT_MS }
}

function noRuns(): CliError {
  return new CliError('no_runs', 'The server has no runs, with which the credentials of a proxy end.', {
    hint: 'Use a server of this version or later.',
  })
}

function isUnknownRoute(error: unknown): boolean {
  return error instanceof MayflyError && error.status === 404 && error.code === 'not_found'
}

/** The claim `run` of a login that is an access token with one. The server would refuse another run, and record that. */
async function runOfLogin({ login }: Session): Promise<string | undefined> {
  if (login?.auth.kind !== 'bearer') return undefined
  const token = login.auth.token.trim()
  // Any other token need not wait for the code that reads a JWT.
  if (!token.startsWith('eyJ')) return undefined
  const { claimsIn } = await import('../identity/token.ts')
  const run = claimsIn(token)?.['run']
  return typeof run === 'string' ? run : undefined
}

/** The last heartbeat that the server has answered; the beginning of the run counts as one. */
function createBeats(now: () => number) {
  const clocks = { now, monotonic: () => performance.now() }
  let sinceBeat = stopwatch(clocks)
  let listener: ((agoMs: number) => void) | undefined
  return {
    sinceBeat: () => sinceBeat(),
    beaten: (agoMs: number) => {
      sinceBeat = stopwatch(clocks, agoMs)
      listener?.(agoMs)
    },
    onBeaten: (next: (agoMs: number) => void) => {
      listener = next
    },
  }
}

/** The server may be anybody's. */
function readRun({ id, heartbeat }: Run): { readonly id: string; readonly intervalMs: number } {
  const intervalMs = parseDuration(String(heartbeat)) ?? 0
  if (/^run_[0-9a-z]{1,60}$/.test(id) && intervalMs >= MIN_HEARTBEAT_MS && intervalMs <= MAX_HEARTBEAT_MS)
    return { id, intervalMs }
  const message = 'The server sent a run without an id, or without a heartbeat from 1s to 1h.'
  throw new MayflyError({ code: 'unexpected_reply', status: 200, message })
}
