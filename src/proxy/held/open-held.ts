import type { Client } from '../../client/client.ts'
import type { IssueRequest, RunState } from '../../client/wire.ts'
import type { ProxyLog } from '../types.ts'
import { createCuts, type RunCuts } from './cuts.ts'
import { createEnds } from './ends.ts'
import { followRun } from './follow-run.ts'
import { createHolding, type Holding } from './holding.ts'
import { type Issued, issueFor } from './issue.ts'
import { placeholdersFor } from './placeholders.ts'
import { keepRenewed } from './renew.ts'
import { createSignOfLife } from './sign-of-life.ts'
import type { Clocks } from './stopwatch.ts'

export interface HeldRequest {
  readonly name: string
  readonly request: IssueRequest
}

export interface HeldOptions {
  readonly client: Pick<Client, 'issue' | 'credential' | 'revoke' | 'backend'> & {
    readonly runs: Pick<Client['runs'], 'events'>
  }
  readonly run: {
    readonly id: string
    readonly heartbeatMs: number
    /** Whether `beaten` is called for each beat of the run that the server answers. */
    readonly beats: boolean
  }
  readonly requests: readonly HeldRequest[]
  readonly clocks: Clocks
  readonly log: ProxyLog
  /** A value in the form of this field, and never the same twice. */
  placeholderFor(type: string, field: string): string
  /** Nothing new may be served for another reason, which this says. */
  whyUnsure(): string | undefined
  /** The server has ended the run: `completed`, `missed_heartbeat`, …; null: it does not say. */
  onRunEnded(reason: string | null): void
}

export interface HeldCredentials {
  readonly held: readonly Holding[]
  readonly cuts: RunCuts
  /** The server has answered a beat that was sent so many milliseconds ago. */
  beaten(agoMs: number): void
  /** Nothing may be used any more; what is open is destroyed. */
  endAll(why: string): void
  /** Everything that was issued, in order. */
  issued(): readonly Issued['credential'][]
  close(): void
}

const TICK_MS = 200

/**
 * Issues what is requested and keeps it usable as long as the run lives. Throws as the client does, and `ProxyFailure`: the end of
 * the run then ends what was issued.
 */
export async function openHeld(options: HeldOptions): Promise<HeldCredentials> {
  const { client, run, requests, clocks, log } = options
  const over = new AbortController()
  const { signal } = over
  const cuts = createCuts()
  const sign = createSignOfLife(clocks, run.heartbeatMs, run.beats)
  const ends = createEnds({ client, log, signal })
  const issued: Issued['credential'][] = []
  const holdings: Holding[] = []
  let whyOver: string | undefined

  const endAll = (why: string) => {
    whyOver ??= why
    for (const holding of holdings) holding.end(why)
    cuts.hold()
  }
  const tick = setInterval(() => {
    for (const holding of holdings) holding.expire()
    if (whyOver !== undefined || !sign.isBeating()) cuts.hold()
    else cuts.lift()
  }, TICK_MS)
  const close = () => {
    clearInterval(tick)
    over.abort(new Error('closed'))
    endAll('The proxy ends.')
  }
  const issue = async (request: IssueRequest) => {
    const one = await issueFor(client, { ...request, run: run.id }, clocks, signal)
    issued.push(one.credential)
    return one
  }
  const hold = async ({ name, request }: HeldRequest) => {
    const [first, { type }] = await Promise.all([issue(request), client.backend(request.backend, { signal })])
    const placeholders = placeholdersFor(first.live.secrets, (field) => options.placeholderFor(type, field))
    const { whyUnsure } = options
    const over = { whyOver: () => whyOver, whyUnsure }
    return createHolding({ name, type, first, placeholders, cuts, sign, ...over, ...ends })
  }
  const keep = (holding: Holding, request: IssueRequest) => {
    ends.confirm(holding, holding.first.live.credentialId)
    const renewing = keepRenewed(
      holding,
      {
        log,
        issue: () => issue(request),
        mayRenew: () => ends.mayRenew(holding),
        discard: ({ live }) => ends.revoke(live.credentialId),
        onRenewed: (next) => {
          holding.renew(next)
          ends.confirm(holding, next.live.credentialId)
        },
      },
      signal,
    )
    // The signal ends it.
    renewing.catch(() => {})
  }

  try {
    const states = compareStates(holdings, onEnded)
    await followRun({ ...states, runs: client.runs, id: run.id, sign, clocks }, signal)
    holdings.push(...(await allOf(requests.map(hold))))
  } catch (error) {
    close()
    throw error
  }
  for (const [index, { request }] of requests.entries()) {
    const holding = holdings[index]
    if (holding !== undefined) keep(holding, request)
  }
  return { held: holdings, cuts, beaten: sign.beaten, endAll, issued: () => issued, close }

  function onEnded(reason: string | null): void {
    if (whyOver !== undefined) return
    endAll('The run has ended.')
    options.onRunEnded(reason)
  }
}

/** What the server says over the events of the run, for all that is held. */
function compareStates(holdings: readonly Holding[], onEnded: (reason: string | null) => void) {
  let living: ReadonlySet<string> = new Set()
  const compare = (at: number) => {
    for (const holding of holdings) holding.compare(living, at)
  }
  return {
    onState: ({ run, at, credentials }: RunState) => {
      living = new Set(credentials)
      if (run.state === 'ended') onEnded(run.reason)
      else compare(Date.parse(at))
    },
    onAlive: compare,
    onGone: () => onEnded(null),
  }
}

/** All of them, or the first error once none is under way. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(work)
  return results.map((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}
