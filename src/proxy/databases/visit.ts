import type { Socket } from 'node:net'
import { hostPort } from '../../domain/network/address.ts'
import type { Decision, RequestLine } from '../types.ts'
import { join, reset } from './copy.ts'
import type { DatabaseParts, Protocol, Times, Visit } from './parts.ts'
import { ConnectionLost } from './read-exactly.ts'
import { Refusal, refusalOf } from './refusal.ts'
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
  const under = new Map<Socket, Promise<void>>()
  const connect = createConnect(parts)

  async function serve(child: Socket, provesItself: boolean): Promise<void> {
    const visit = openVisit(parts, {
      child,
      provesItself,
      placeholder,
      connect,
      isFull: () => under.size > most,
    })
    try {
      await protocol(visit)
    } catch (error) {
      visit.failed(error)
      if (!isExpected(error)) log.warn(`A connection to ${held.name} failed: ${codeOf(error)}.`)
    } finally {
      visit.end()
    }
  }

  return {
    serve(child, { provesItself }) {
      // Those that were refused a moment ago have a place, too.
      if (under.size >= 2 * most) return void reset(child)
      const served = serve(child, provesItself).finally(() => under.delete(child))
      under.set(child, served)
    },
    async end() {
      for (const child of under.keys()) reset(child)
      await Promise.all(under.values())
    },
  }
}

/** The other end went away, or took too long. */
const isExpected = (error: unknown) =>
  error instanceof Refusal ||
  error instanceof ConnectionLost ||
  (error instanceof Error && ('syscall' in error || /^(TimeoutError|AbortError)$/.test(error.name)))

const codeOf = (error: unknown) =>
  error instanceof Error ? `${error.name}${'code' in error ? ` ${String(error.code)}` : ''}` : 'unknown'

interface OpenVisit extends Visit {
  failed(error: unknown): void
  /** Records it, and ends what is still open. */
  end(): void
}

interface VisitOptions extends Pick<Visit, 'child' | 'provesItself' | 'placeholder'> {
  readonly connect: ReturnType<typeof createConnect>
  isFull(): boolean
}

function openVisit(parts: DatabaseParts, options: VisitOptions): OpenVisit {
  const { held, use, cuts, now = Date.now } = parts
  const { child, connect, isFull } = options
  const times = { ...TIMES, ...parts.times }
  const at = now()
  const sockets = new Set<Socket>([child])
  let known: { readonly credentialId: string; readonly untrack: () => void } | undefined
  let isCut = false
  let decision: Decision | undefined
  let reason: Refusal['code'] | null = null
  const cut = () => {
    isCut = true
    for (const socket of sockets) reset(socket)
  }
  const requireUncut = () => {
    if (isCut) throw refusalOf({ state: 'ended', why: 'it was revoked.' })
  }

  return {
    ...{ ...options, use, times },
    admit() {
      if (isFull()) throw TOO_MANY
      const live = held.now()
      if (live.state !== 'live') throw refusalOf(live)
      const untrack = cuts.track(live.credentialId, cut)
      known = { credentialId: live.credentialId, untrack }
      requireUncut()
      return live
    },
    async connect({ givesLogin }) {
      const signal = AbortSignal.timeout(times.upstreamMs)
      const onSocket = (socket: Socket) => {
        sockets.add(socket)
        if (isCut) reset(socket)
      }
      const socket = await connect({ givesLogin, signal, onSocket })
      requireUncut()
      return socket
    },
    async secure(raw) {
      const secured = await secureUpstream(parts, raw, AbortSignal.timeout(times.upstreamMs))
      sockets.add(secured)
      requireUncut()
      return secured
    },
    decide(made) {
      decision = made
    },
    join: (upstream, change) => join(child, upstream, { change, lingerMs: times.lingerMs }),
    failed(error) {
      // What breaks after the login is the end of a session.
      if (isCut || decision !== undefined) return
      if (error instanceof Refusal) reason = error.code
      else if (known !== undefined) reason = 'upstream_unreachable'
    },
    end() {
      known?.untrack()
      for (const socket of sockets) reset(socket)
      if (isCut && decision === undefined) reason = 'credential_ended'
      if (decision === undefined && reason === null) return
      parts.recorder.record({
        ...lineOf(),
        decision: decision ?? 'refused',
        reason: decision === undefined ? reason : null,
      })
    },
  }

  function lineOf(): Omit<RequestLine, 'decision' | 'reason'> {
    return {
      ...{ at, protocol: use.protocol, method: null, authority: hostPort(use.host, use.port), path: null },
      ...{ status: null, bytesSent: child.bytesRead, bytesReceived: child.bytesWritten },
      ...{ durationMs: Math.max(0, now() - at), backend: held.backend },
      ...{ credentialId: known?.credentialId ?? null, placeholder: `${held.name}.password`, redacted: 0 },
    }
  }
}

const TOO_MANY = new Refusal(
  'too_many_connections',
  'There are too many connections through the proxy.',
  'Close some of them, or use a smaller pool.',
)
