import { constants } from 'node:http2'
import type { BodyMask } from '../mask/mask.ts'
import { pump } from './body.ts'
import type { Context } from './context.ts'
import { Failure, failureOf, isOfAddress } from './failure.ts'
import type { Inbound, Way } from './inbound/inbound.ts'
import type { Inspected } from './inspect.ts'
import type { Line } from './line.ts'
import { refuse } from './own-reply.ts'
import type { Prepared } from './prepared.ts'
import { returnedOf, withoutHop } from './reply.ts'
import type { Outbound, OutboundEvents, Reply } from './upstream/outbound.ts'
import type { Destination } from './upstream/reach.ts'

export interface Exchange {
  readonly ctx: Context
  readonly inbound: Inbound
  readonly way: Way
  readonly to: Destination
  readonly prepared: Prepared
  readonly line: Line
  /** Of a request to an authority of no backend. */
  readonly inspected: Inspected | undefined
}

/** How long a client may go on to send after the reply has ended. */
const LINGER_MS = 2_000
const NOTHING = Buffer.alloc(0)

interface State {
  outbound: Outbound | undefined
  /** The client has gone, or all is done. */
  isOver: boolean
  isUploaded: boolean
  stopUpload: (() => void) | undefined
  readonly idle: NodeJS.Timeout
}

/** Moves one request up and its reply down. Whatever breaks on one side breaks the other. Settles when the request is under way. */
export async function exchange(of: Exchange): Promise<void> {
  const { ctx, inbound, prepared, line, to } = of
  const state: State = {
    ...{ outbound: undefined, isOver: false, isUploaded: false, stopUpload: undefined },
    idle: setTimeout(() => fail(of, state, new Failure('too_slow')), ctx.idleMs),
  }
  const { live } = prepared
  const untrack = live && ctx.cuts.track(live.credentialId, () => cut(of, state))
  line.beforeEnd = () => {
    state.isOver = true
    clearTimeout(state.idle)
    untrack?.()
    state.stopUpload?.()
    state.outbound?.break()
    line.redacted = prepared.mask?.count ?? 0
  }
  line.abort = (failure) => fail(of, state, failure)
  if (state.isOver) return
  try {
    const request = requestOf(of)
    const isHttp2 = inbound.http2 !== undefined
    const outbound = await ctx.pools.send(
      to,
      live?.credentialId ?? null,
      isHttp2,
      request,
      eventsOf(of, state),
    )
    state.outbound = outbound
    if (state.isOver) outbound.break()
    else upload(of, state, outbound, request.hasBody)
  } catch (error) {
    fail(of, state, failureOf(error, 'unreachable'))
  }
}

function requestOf({ inbound, prepared }: Exchange) {
  const { target, headers, body } = prepared
  const hasBody = body === 'stream' ? inbound.hasBody : body.length > 0
  return { method: inbound.method, target, headers, hasBody }
}

function eventsOf(of: Exchange, state: State): OutboundEvents {
  const { inbound, prepared } = of
  return {
    onContinue: () => inbound.sendContinue(),
    onInform: (status, headers) => {
      const flat = withoutHop(headers)
      inbound.inform(status, prepared.mask?.headers(flat) ?? flat)
    },
    onReply: (reply) => {
      try {
        download(of, state, reply)
      } catch (error) {
        fail(of, state, failureOf(error, 'broken'))
      }
    },
    onBroken: (failure, code) => fail(of, state, failure, code),
  }
}

function upload(of: Exchange, state: State, outbound: Outbound, hasBody: boolean): void {
  const { inbound, prepared, line, inspected } = of
  state.isUploaded = !hasBody
  if (!hasBody) return
  if (prepared.body !== 'stream') {
    state.isUploaded = true
    line.bytesSent += prepared.body.length
    outbound.body.end(prepared.body)
    return
  }
  // What waits for a go-ahead gets it from the upstream; over HTTP/2 or after an inspection there is none to wait for.
  if (inbound.expectsContinue && !prepared.headers.some(([name]) => name.toLowerCase() === 'expect'))
    inbound.sendContinue()
  const sink = prepared.through ?? outbound.body
  if (prepared.through !== undefined) through(of, state, prepared.through, outbound)
  const onEnd = () => {
    state.isUploaded = true
    const trailers = withoutHop(inbound.trailers())
    if (trailers.length > 0) sendTrailers(of, state, outbound, trailers)
    return undefined
  }
  const count = (chunk: Buffer) => {
    state.idle.refresh()
    line.bytesSent += chunk.length
    return inspected?.search(chunk) === true ? NOTHING : chunk
  }
  for (const chunk of inspected?.first ?? []) {
    line.bytesSent += chunk.length
    sink.write(chunk)
  }
  if (inspected?.isOver === true) {
    onEnd()
    sink.end()
    return
  }
  const rest = inspected?.rest ?? inbound.body
  state.stopUpload = pump(rest, sink, { onChunk: count, onEnd })
  rest.resume()
}

function through(
  of: Exchange,
  state: State,
  transform: NonNullable<Prepared['through']>,
  outbound: Outbound,
) {
  transform.on('error', (cause) => fail(of, state, new Failure('bad_signature', { cause })))
  transform.pipe(outbound.body)
}

/** Placeholders in trailers are nowhere allowed. */
function sendTrailers(of: Exchange, state: State, outbound: Outbound, trailers: readonly string[]): void {
  const [found] = of.ctx.rules().search.inText(trailers.join('\n'))
  if (found === undefined) outbound.sendTrailers(trailers)
  else fail(of, state, new Failure('misplaced', { held: found.held, misused: found }))
}

function download(of: Exchange, state: State, reply: Reply): void {
  const { inbound, prepared, line, way } = of
  if (state.isOver) return
  state.idle.refresh()
  const { mask, use } = prepared
  const location = way.site && use ? { from: use.origin, to: way.site.url } : undefined
  const returned = returnedOf(reply, { method: inbound.method, mask, location })
  line.status = returned.status
  const out = inbound.respond(returned.status, returned.headers, returned.isOver)
  out.on('error', () => undefined)
  if (returned.isOver) {
    reply.body.resume()
    reply.body.once('end', () => finishUpload(of, state))
    return
  }
  const masking = returned.isMasked ? mask?.open() : undefined
  const body = returned.open((failure) => fail(of, state, failure))
  pump(body, out, {
    onChunk: (chunk) => count(state, line, chunk, masking),
    onEnd: () => {
      const trailers = withoutHop(reply.trailers())
      if (trailers.length > 0) inbound.sendTrailers(mask?.headers(trailers) ?? trailers)
      finishUpload(of, state)
      return masking?.end()
    },
  })
}

function count(state: State, line: Line, chunk: Buffer, masking: BodyMask | undefined): Buffer {
  state.idle.refresh()
  line.bytesReceived += chunk.length
  return masking === undefined ? chunk : masking.write(chunk)
}

/** The upstream has said all: what the client still sends goes nowhere. */
function finishUpload({ inbound, inspected }: Exchange, state: State): void {
  if (state.isUploaded || state.isOver) return
  state.stopUpload?.()
  state.outbound?.break()
  const rest = inspected?.rest ?? inbound.body
  rest.resume()
  const timer = setTimeout(() => inbound.break(0), LINGER_MS).unref()
  inbound.body.once('close', () => clearTimeout(timer))
}

/** Nothing more is sent to either side. The client learns why, if it has no part of a reply yet. */
export function fail(
  of: Pick<Exchange, 'inbound' | 'line' | 'ctx'>,
  state: State,
  failure: Failure,
  code?: number,
): void {
  const { inbound, line } = of
  if (state.isOver) return
  state.isOver = true
  state.stopUpload?.()
  state.outbound?.break()
  line.reason ??= failure.reason
  if (failure.misused !== undefined) line.decision = 'misused'
  else if (isOfAddress(failure)) line.decision = 'refused'
  // The upstream has not begun with it: the client may send it again.
  const isUntouched = code === constants.NGHTTP2_REFUSED_STREAM && inbound.http2 !== undefined
  if (inbound.isAnswered || isUntouched) inbound.break(code)
  else line.status = refuse(inbound, failure.reason)
  if (failure.misused !== undefined) of.ctx.onMisuse(failure.misused.held)
}

function cut({ inbound, line }: Exchange, state: State): void {
  if (state.isOver) return
  state.isOver = true
  line.reason = 'ended'
  state.stopUpload?.()
  state.outbound?.break()
  inbound.break()
}
