import { unlessAborted } from '../../domain/abort.ts'
import { OWN_END_REASONS } from '../../domain/run.ts'
import type { RunningProxy } from '../../proxy/start-proxy.ts'
import type { ProxySettings } from '../../proxy/types.ts'
import { EXIT, failureOf } from '../frame/failure.ts'
import { Interrupted } from '../frame/surroundings.ts'
import { oneLine } from '../frame/terminal-text.ts'
import type { Context } from '../frame/verb.ts'
import type { RequestedCredential } from '../project-file/requested-credential.ts'
import { openAgentSession, type Session } from '../session/open.ts'
import { environmentText, openProxyPlace, type ProxyPlace } from './environment-file.ts'
import type { RunEnd } from './heartbeat.ts'
import { type IssuedCredentials, trackIssued } from './issued-credentials.ts'
import { leaveSoon } from './leave-soon.ts'
import { type OpenOptions, type OpenRun, openRun, type RunWish, runOfOthers } from './open-run.ts'
import { deliverAll } from './prepare.ts'
import { asIssuance } from './proxied.ts'
import { describeProxyEnd, type EndOfProxy } from './proxy-end.ts'
import { inWords } from './proxy-failure.ts'
import { serverOfProxy } from './proxy-server.ts'
import { count, describeTotals, whereRefused } from './proxy-totals.ts'
import { takeSignals } from './signal-phases.ts'

/** A proxy that stands alone. */
export interface ProxyAlone {
  readonly requested: readonly RequestedCredential[]
  readonly settings: ProxySettings
  readonly envFile: string | undefined
  /** A run that somebody else began and keeps alive. */
  readonly run: string | undefined
  /** Otherwise: its own. */
  readonly wish: RunWish
}

type End = EndOfProxy | { readonly kind: 'signal'; readonly number: number }

const END_MS = 15_000

/** Serves until a signal, which returns 0, or until the run has ended elsewhere. Returns the exit code. */
export async function serveAlone(context: Context, alone: ProxyAlone): Promise<number> {
  const over = Promise.withResolvers<End>()
  const release = takeSignals((name, number) => {
    if (!name.startsWith('SIGUSR')) over.resolve({ kind: 'signal', number })
  })
  try {
    return await openAndServe(context, alone, over)
  } catch (error) {
    throw inWords(error)
  } finally {
    release()
    leaveSoon()
  }
}

/** Everything that the end of the proxy ends. */
interface Opened {
  readonly session: Session
  readonly issued: IssuedCredentials
  readonly place: ProxyPlace
  readonly run: RunAlone
  note(text: string): void
}

async function openAndServe(
  context: Context,
  alone: ProxyAlone,
  over: PromiseWithResolvers<End>,
): Promise<number> {
  const note = (text: string) => context.out.note(oneLine(text))
  const session = await openAgentSession(context)
  const place = await openProxyPlace(context, alone.envFile)
  const starting = new AbortController()
  void over.promise.then((end) => {
    if (end.kind === 'signal') starting.abort(new Interrupted(end.number))
  })
  const opening = openRunAlone(context, alone, { session, signal: starting.signal, note, over })
  // Whoever waits for it hears of a failure.
  opening.catch(() => {})
  const own = opening.then(({ open }) => open)
  own.catch(() => {})
  const issued = trackIssued(session.client, context.now, () => {}, own)
  try {
    const run = await opening
    return await serve(context, alone, { session, issued, place, run, note }, over, starting.signal)
  } finally {
    void own.then((open) => open?.stopBeating()).catch(() => {})
    const failure = await issued.revokeAll(AbortSignal.timeout(END_MS))
    if (failure !== undefined) note(`mayfly: not everything could be ended. ${failureOf(failure).message}`)
    await place.remove().catch(() => note(`mayfly: Cannot remove ${place.envFile ?? place.directory}.`))
  }
}

interface RunAlone {
  readonly id: string
  readonly heartbeatMs: number
  /** Undefined: somebody else keeps it alive. */
  readonly open: OpenRun | undefined
}

async function openRunAlone(
  context: Context,
  { run: named, wish }: ProxyAlone,
  {
    session,
    signal,
    note,
    over,
  }: Omit<OpenOptions, 'onEnded'> & { readonly over: PromiseWithResolvers<End> },
): Promise<RunAlone> {
  const onEnded = (_: string, { reason }: RunEnd) => over.resolve({ kind: 'run_ended', reason })
  const open =
    named === undefined ? await openRun(context, wish, { session, signal, note, onEnded }) : undefined
  if (open !== undefined) return { id: open.id, heartbeatMs: open.heartbeatMs, open }
  return { ...(await runOfOthers(session, { named, signal })), open }
}

async function serve(
  context: Context,
  { requested, settings }: ProxyAlone,
  { session, issued, place, run, note }: Opened,
  over: PromiseWithResolvers<End>,
  signal: AbortSignal,
): Promise<number> {
  const { id, heartbeatMs, open } = run
  const [{ startProxy }, server] = await Promise.all([
    import('../../proxy/start-proxy.ts'),
    serverOfProxy(session),
  ])
  const starting = startProxy({
    ...{ settings, server, directory: place.directory },
    client: session.client,
    run: { id, heartbeatMs, beats: open !== undefined },
    requests: requested.map(({ name, request }) => ({ name, request })),
    now: context.now,
    log: { warn: (text) => note(`mayfly: ${text}`) },
    onIssued: ({ id: credential, ...known }) => issued.adopt(credential, known),
    onEnd: over.resolve,
  })
  // A signal does not wait for an upstream that is slow: the end of the run ends what it issues.
  const proxy = await unlessAborted(starting, signal, (late) => late.close()).catch((error: unknown) => {
    if (!hasEnded(error)) throw error
  })
  if (proxy === undefined) return exitCodeOf(id, await over.promise, note)
  open?.onBeaten(proxy.beaten)
  if (open !== undefined) proxy.beaten(open.sinceBeat())
  try {
    await announce(context, proxy, { session, issued, place, run, note }, requested)
    return exitCodeOf(id, await over.promise, note)
  } finally {
    open?.onBeaten(() => {})
    await proxy.close()
    const totals = proxy.totals()
    note(`mayfly: ${describeTotals(totals, issued.outcomes().length)}${whereRefused(totals, id)}.`)
  }
}

/** The run, before anything was served. */
const hasEnded = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ProxyFailure' && 'code' in error && error.code === 'run_ended'

/** Delivers the placeholders, and says that everything listens. */
async function announce(
  context: Context,
  proxy: RunningProxy,
  { session, issued, place, run, note }: Opened,
  requested: readonly RequestedCredential[],
): Promise<void> {
  const obtained = proxy.credentials.map(asIssuance)
  const openDirectory = () => Promise.resolve(place.files)
  const delivered = await deliverAll(
    context,
    { session, issued, note, openDirectory, onEnd: () => {} },
    { requested, obtained, env: {} },
  )
  const { variables: leading, notes } = await proxy.leadTo(delivered)
  for (const text of notes) note(text)
  const variables = { ...delivered, ...leading }
  await place.write(variables)
  const { envFile } = place
  if (context.out.isJson)
    await context.out.json({ run: run.id, env_file: envFile ?? null, variables, ...proxy.listeners }, 'line')
  else if (envFile === undefined) await context.out.result(environmentText(variables).trimEnd())
  const where = envFile === undefined ? '' : `; the environment is in ${envFile}`
  note(`mayfly: ready: ${count(requested.length, 'credential')} for ${run.id}${where}.`)
}

/** What a service is told: 5 where somebody ended the run, which beginning another one would undo. */
function exitCodeOf(id: string, end: End, note: Opened['note']): number {
  if (end.kind === 'signal') return EXIT.done
  note(`mayfly: ${describeProxyEnd(id, end)}.`)
  if (end.kind === 'misused') return EXIT.refused
  const byDecision: readonly RunEnd['reason'][] = [...OWN_END_REASONS, 'ended_by', 'agent_ended']
  return byDecision.includes(end.reason) ? EXIT.refused : EXIT.failed
}
