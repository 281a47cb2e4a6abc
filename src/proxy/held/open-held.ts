import type { Client } from '../../client/client.ts'
import { aboutBackend } from '../../client/errors.ts'
import type { IssuedCredential, IssueRequest, Run, RunState } from '../../client/wire.ts'
import type { Clocks } from '../../domain/stopwatch.ts'
import type { ProxyLog } from '../types.ts'
import { createCuts, type RunCuts } from './cuts.ts'
import { createEnds } from './ends.ts'
import { followRun } from './follow-run.ts'
import { createHolding, type Holding } from './holding.ts'
import { type Issued, issuerOf } from './issue.ts'
import { placeholdersFor } from './placeholders.ts'
import { keepRenewed } from './renew.ts'
import { createSignOfLife } from './sign-of-life.ts'

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
  placeholderFor(type: string, field: string, secret: string): string
  /** Nothing new may be served for another reason, which this says. */
  whyUnsure(): string | undefined
  /** At first, and at each renewal. */
  onIssued(issued: Pick<IssuedCredential, 'id' | 'backend' | 'expires_at'>): void
  /** The server has ended the run; null: it does not say why. */
  onRunEnded(reason: Run['reason']): void
}

export interface HeldCredentials {
  readonly held: readonly Holding[]
  readonly cuts: RunCuts
  /** The server has answered a beat that was sent so many milliseconds ago. */
  beaten(agoMs: number): void
  /** Nothing may be used any more; what is open is destroyed. */
  endAll(why: string): void
  close(): void
}

const TICK_MS = 200

/**
 * Issues what is requested and keeps it usable as long as the run lives. Throws as the client does, and `ProxyFailure`: the end of
 * the run then ends what was issued.
 */
export async function openHeld(options: HeldOptions): Promise<HeldCredentials> {
  const { client, run, requests, clocks } = options
  const life = beginLife(options)
  const { holdings, signal, cuts, sign, endAll } = life
  const asked = requests.map((one): Asked => {
    const ask = issuerOf(client, { ...one.request, run: run.id }, clocks)
    const issue = async () => {
      const issued = await ask(signal)
      options.onIssued(issued.credential)
      return issued
    }
    return { ...one, issue }
  })
  const states = compareStates(holdings, life.onEnded)
  try {
    await followRun({ ...states, runs: client.runs, id: run.id, sign, clocks }, signal)
    holdings.push(...(await allOf(asked.map((one) => holdNamed(options, life, one)))))
    states.compareAgain()
  } catch (error) {
    life.close()
    throw error
  }
  for (const [index, holding] of holdings.entries()) {
    const one = asked[index]
    if (one !== undefined) keep(holding, one.issue, { ...life, ...states }, options.log)
  }
  return { held: holdings, cuts, beaten: sign.beaten, endAll, close: life.close }
}

interface Asked extends HeldRequest {
  readonly issue: () => Promise<Issued>
}

type Life = ReturnType<typeof beginLife>

/** What all credentials of the run share: whether they may be used, and their end. */
function beginLife({ client, run, clocks, log, onRunEnded, whyUnsure }: HeldOptions) {
  const over = new AbortController()
  const { signal } = over
  const cuts = createCuts()
  const sign = createSignOfLife(clocks, run.heartbeatMs, run.beats)
  const ends = createEnds({ client, log, signal })
  const holdings: Holding[] = []
  let why: string | undefined
  const endAll = (text: string) => {
    why ??= text
    for (const holding of holdings) holding.end(text)
    cuts.hold()
  }
  const tick = setInterval(() => {
    for (const holding of holdings) holding.expire()
    if (why !== undefined || !sign.isBeating()) cuts.hold()
    else cuts.lift()
  }, TICK_MS)
  const close = () => {
    clearInterval(tick)
    over.abort(new Error('closed'))
    endAll('The proxy ends.')
  }
  const onEnded = (reason: Run['reason']) => {
    if (why !== undefined) return
    endAll('The run has ended.')
    onRunEnded(reason)
  }
  return { signal, cuts, sign, ends, holdings, whyOver: () => why, whyUnsure, endAll, onEnded, close }
}

async function hold(
  { client, placeholderFor }: HeldOptions,
  { signal, ends, ...life }: Life,
  { name, request, issue }: Asked,
): Promise<Holding> {
  const [first, { type }] = await allOf([issue(), client.backend(request.backend, { signal })])
  const { secrets } = first.live
  const placeholders = placeholdersFor(secrets, (field, secret) => placeholderFor(type, field, secret))
  return createHolding({ ...life, ...ends, name, type, first, placeholders })
}

/** With several, an error says which one it is about. */
async function holdNamed(options: HeldOptions, life: Life, one: Asked): Promise<Holding> {
  try {
    return await hold(options, life, one)
  } catch (error) {
    throw options.requests.length === 1 ? error : aboutBackend(error, one.request.backend)
  }
}

function keep(
  holding: Holding,
  issue: () => Promise<Issued>,
  { ends, signal, compareAgain }: Life & Pick<States, 'compareAgain'>,
  log: ProxyLog,
): void {
  ends.confirm(holding, holding.first.live.credentialId)
  const renewing = keepRenewed(
    holding,
    {
      log,
      issue,
      mayRenew: () => ends.mayRenew(holding),
      discard: ({ live }) => ends.revoke(live.credentialId),
      onRenewed: (next) => {
        holding.renew(next)
        compareAgain()
        ends.confirm(holding, next.live.credentialId)
      },
    },
    signal,
  )
  // The signal ends it.
  renewing.catch(() => {})
}

type States = ReturnType<typeof compareStates>

/** What the server says over the events of the run, for all that is held. */
function compareStates(holdings: readonly Holding[], onEnded: (reason: Run['reason']) => void) {
  let living: ReadonlySet<string> = new Set()
  let last = 0
  const compare = (at: number) => {
    last = at
    for (const holding of holdings) holding.compare(living, at)
  }
  return {
    onState: ({ run, at, credentials }: RunState) => {
      living = new Set(credentials)
      if (run.state === 'ended') onEnded(run.reason)
      else compare(Date.parse(at))
    },
    onAlive: compare,
    /** A state may show a credential before the answer to its issue arrives. It then counts as seen, so that its end takes effect at once. */
    compareAgain: () => compare(last),
    onGone: () => onEnded(null),
  }
}

/** All of them, or the first error once none is under way. */
async function allOf<const T extends readonly Promise<unknown>[]>(
  work: T,
): Promise<{ -readonly [At in keyof T]: Awaited<T[At]> }> {
  const failed = (await Promise.allSettled(work)).find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return Promise.all(work)
}
