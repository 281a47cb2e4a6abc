import type { Socket } from 'node:net'
import { hostPort } from '../../domain/network/address.ts'
import { reset } from '../sockets.ts'
import { createTrust, type Trust } from '../trust.ts'
import type { RequestLine } from '../types.ts'
import { join } from './copy.ts'
import { createOutcome, type Outcome } from './outcome.ts'
import type { DatabaseParts, Protocol, Times, Visit } from './parts.ts'
import { ConnectionLost } from './read-exactly.ts'
import { misusedPlaceholder, Refusal, refusalOf, wrongPlaceholder } from './refusal.ts'
import { ServerError } from './server-error.ts'
import { createConnect, secureUpstream } from './upstream.ts'

const TIMES: Times = { loginMs: 30_000, upstreamMs: 10_000, lingerMs: 60_000 }
const MOST = 1_000

export interface Visits {
  serve(child: Socket, options: { readonly provesItself: boolean }): void
  /** Ends them all. */
  end(): Promise<void>
}

export function createVisits(parts: DatabaseParts, protocol: Protocol, placeholder: string): Visits {
  const { most = MOST, log, held } = parts
  const under = new Map<Socket, { readonly visit: OpenVisit; readonly served: Promise<void> }>()
  const connect = createConnect(parts)
  const trust = createTrust()

  async function serve(visit: OpenVisit): Promise<void> {
    try {
      await protocol(visit)
    } catch (error) {
      visit.failed(error)
      if (!isExpected(error)) log.warn(`A connection to ${held.name} failed: ${codeOf(error)}.`)
    } finally {
      visit.end()
      under.delete(visit.child)
    }
  }

  return {
    serve(child, { provesItself }) {
      // Those that were refused a moment ago have a place, too.
      if (under.size >= 2 * most) return void reset(child)
      const options = { child, provesItself, placeholder, connect, trust, isFull: () => under.size > most }
      const visit = openVisit(parts, options)
      // Counted before it begins.
      const served = Promise.withResolvers<void>()
      under.set(child, { visit, served: served.promise })
      void serve(visit).finally(served.resolve)
    },
    async end() {
      for (const { visit } of under.values()) visit.reset()
      await Promise.all([...under.values()].map(({ served }) => served))
    },
  }
}

/** The other end went away, or took too long. */
const isExpected = (error: unknown) =>
  error instanceof Refusal ||
  error instanceof ConnectionLost ||
  error instanceof ServerError ||
  (error instanceof Error && ('syscall' in error || /^(TimeoutError|AbortError)$/.test(error.name)))

const codeOf = (error: unknown) =>
  error instanceof Error ? `${error.name}${'code' in error ? ` ${String(error.code)}` : ''}` : 'unknown'

interface OpenVisit extends Visit {
  failed(error: unknown): void
  reset(): void
  /** Records it, and ends what is still open. */
  end(): void
}

interface VisitOptions extends Pick<Visit, 'child' | 'provesItself' | 'placeholder'> {
  readonly connect: ReturnType<typeof createConnect>
  readonly trust: Trust
  isFull(): boolean
}

function openVisit(parts: DatabaseParts, options: VisitOptions): OpenVisit {
  const { held, cuts, now = Date.now } = parts
  const { child, connect, trust, isFull } = options
  const times = { ...TIMES, ...parts.times }
  const at = now()
  const outcome = createOutcome()
  const sockets = createSockets(child, held)
  let known: { readonly credentialId: string; readonly untrack: () => void } | undefined
  const cut = () => {
    outcome.cut()
    sockets.cut()
  }
  return {
    ...{ ...options, use: parts.use, times, decide: outcome.decide, reset: sockets.reset },
    refuseLogin: (isIt) => refuseLogin(parts, outcome, isIt),
    admit() {
      if (isFull()) throw TOO_MANY
      const live = held.now()
      if (live.state !== 'live') throw refusalOf(live)
      known = { credentialId: live.credentialId, untrack: cuts.track(live.credentialId, cut) }
      sockets.requireUncut()
      return live
    },
    async connect({ givesLogin }) {
      const signal = AbortSignal.timeout(times.upstreamMs)
      const socket = await connect({ givesLogin, signal, onSocket: sockets.add })
      sockets.requireUncut()
      return socket
    },
    async secure(raw) {
      const secured = await secureUpstream(
        { use: parts.use, trust },
        raw,
        AbortSignal.timeout(times.upstreamMs),
      )
      sockets.add(secured)
      sockets.requireUncut()
      return secured
    },
    join(upstream, change) {
      outcome.joined()
      return join(child, upstream, { change, lingerMs: times.lingerMs })
    },
    failed: (error) => outcome.failed(error, known !== undefined),
    end() {
      known?.untrack()
      sockets.reset()
      const result = outcome.result()
      if (result === undefined) return
      const [durationMs, credentialId] = [Math.max(0, now() - at), known?.credentialId ?? null]
      parts.recorder.record({ ...lineOf(parts, child), at, durationMs, credentialId, ...result })
    },
  }
}

function refuseLogin(
  parts: DatabaseParts,
  outcome: Outcome,
  isIt: (placeholder: string) => boolean,
): Refusal {
  const found = misusedOf(parts, isIt)
  if (found === undefined) return wrongPlaceholder()
  outcome.misused(found.name)
  parts.onMisuse?.(found.held)
  return misusedPlaceholder()
}

function misusedOf({ all, held: own }: DatabaseParts, isIt: (placeholder: string) => boolean) {
  for (const held of all?.() ?? []) {
    if (held.name === own.name) continue
    for (const [field, value] of held.placeholders) {
      if (isIt(value)) return { held, name: field === '' ? held.name : `${held.name}.${field}` }
    }
  }
  return undefined
}

function lineOf({ held, use }: DatabaseParts, child: Socket) {
  return {
    ...{
      protocol: use.protocol,
      method: null,
      authority: hostPort(use.host, use.port),
      path: null,
      status: null,
    },
    ...{ bytesSent: child.bytesRead, bytesReceived: child.bytesWritten },
    ...{ backend: held.backend, placeholder: `${held.name}.password`, redacted: 0 },
  } satisfies Partial<RequestLine>
}

/** Of one connection: once cut, it gets no others. */
function createSockets(child: Socket, held: DatabaseParts['held']) {
  const sockets = new Set<Socket>([child])
  let isCut = false
  const resetAll = () => {
    for (const socket of sockets) reset(socket)
  }
  return {
    add(socket: Socket) {
      sockets.add(socket)
      if (isCut) reset(socket)
    },
    requireUncut() {
      if (!isCut) return
      const state = held.now()
      throw refusalOf(state.state === 'live' ? { state: 'ended', why: 'it was revoked.' } : state)
    },
    cut() {
      isCut = true
      resetAll()
    },
    reset: resetAll,
  }
}

const TOO_MANY = new Refusal(
  'too_many_connections',
  'There are too many connections through the proxy.',
  'Close some of them, or use a smaller pool.',
)
