import { type IncomingMessage, request, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ignoreErrors, reset } from '../sockets.ts'
import { pump } from './body.ts'
import { bridge } from './bridge.ts'
import type { Context } from './context.ts'
import { Failure } from './failure.ts'
import { pairsOf } from './flat.ts'
import type { Inbound } from './inbound/inbound.ts'
import type { Line } from './line.ts'
import type { Prepared } from './prepared.ts'
import { returnedOf, withoutHop } from './reply.ts'
import { openFrameSearch } from './search-frames.ts'
import { MAX_HEADER_BYTES } from './upstream/outbound-h1.ts'
import type { Destination } from './upstream/reach.ts'

/** The connection of a client that asked for another protocol, and what came after its request. */
export interface Socketed {
  readonly socket: Socket
  readonly head: Buffer
}

interface Switch {
  readonly ctx: Context
  readonly inbound: Inbound
  readonly to: Destination
  readonly prepared: Prepared
  readonly line: Line
  readonly socketed: Socketed
}

const EXTENSIONS = /^sec-websocket-extensions$/i
/** What a client may send before the upstream has agreed. */
const MOST_EARLY_BYTES = 64 * 1024

/** Asks the upstream for the other protocol. After its 101 bytes flow both ways until one side ends, breaks or is silent for too long. */
export async function switchProtocols(of: Switch): Promise<void> {
  const { ctx, to, prepared, socketed } = of
  if (socketed.head.length > MOST_EARLY_BYTES) throw new Failure('bad_framing')
  const { live } = prepared
  let upstream: Socket | undefined
  const untrack =
    live &&
    ctx.cuts.track(live.credentialId, () => {
      of.line.reason = 'ended'
      reset(socketed.socket)
      if (upstream !== undefined) reset(upstream)
    })
  of.line.beforeEnd = () => {
    untrack?.()
    upstream?.destroy()
    of.line.redacted = prepared.mask?.count ?? 0
  }
  upstream = await ctx.pools.open(to, live?.credentialId ?? null)
  ignoreErrors(upstream)
  if (socketed.socket.destroyed) {
    reset(upstream)
    return
  }
  await ask(of, upstream)
}

function ask(of: Switch, upstream: Socket): Promise<void> {
  const { inbound, prepared, ctx } = of
  const outgoing = request({
    ...{ method: inbound.method, path: prepared.target, headers: prepared.headers.flat(), setHost: false },
    ...{ createConnection: () => upstream, maxHeaderSize: MAX_HEADER_BYTES },
  })
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Failure('too_slow'))
      reset(upstream)
    }, ctx.idleMs)
    outgoing.once('error', (cause) => reject(new Failure('broken', { cause })))
    outgoing.once('close', () => clearTimeout(timer))
    outgoing.once('response', (reply) => {
      clearTimeout(timer)
      try {
        declined(of, reply)
        resolve()
      } catch (error) {
        reject(error)
      }
    })
    outgoing.once('upgrade', (reply, _socket, head) => {
      clearTimeout(timer)
      resolve()
      agreed(of, upstream, reply.rawHeaders, head)
    })
    outgoing.end()
  })
}

/** The upstream answers in HTTP: its reply ends the connection. */
function declined({ inbound, prepared, line }: Switch, reply: IncomingMessage): void {
  const { statusCode: status = 0, rawHeaders: headers } = reply
  const { mask } = prepared
  const received = { status, headers, body: reply, isOver: false }
  const returned = returnedOf(received, { method: inbound.method, mask, location: undefined })
  line.status = status
  const masking = returned.isMasked ? mask?.open() : undefined
  const out = inbound.respond(status, [...returned.headers, 'Connection', 'close'], returned.isOver)
  reply.on('error', () => inbound.break())
  if (returned.isOver) {
    reply.resume()
    return
  }
  const body = returned.open(() => inbound.break())
  pump(body, out, {
    onChunk: (chunk) => {
      line.bytesReceived += chunk.length
      return masking === undefined ? chunk : masking.write(chunk)
    },
    onEnd: () => masking?.end(),
  })
}

function agreed(of: Switch, upstream: Socket, rawHeaders: readonly string[], head: Buffer): void {
  const { ctx, prepared, line, socketed } = of
  const { socket } = socketed
  line.status = 101
  const flat = withoutHop(rawHeaders)
  const headers = prepared.mask?.headers(flat) ?? flat
  const lines = [`HTTP/1.1 101 ${STATUS_CODES[101]}`, 'Connection: Upgrade', `Upgrade: ${prepared.upgrade}`]
  for (const [name, value] of pairsOf(headers)) {
    // None was asked for: compressed messages could be neither searched nor masked.
    if (!EXTENSIONS.test(name)) lines.push(`${name}: ${value}`)
  }
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  if (head.length > 0) upstream.unshift(head)
  if (socketed.head.length > 0) socket.unshift(socketed.head)
  const mayPass = prepared.use === undefined ? searchOf(of, upstream) : undefined
  bridge({ socket, upstream, line, idleMs: ctx.idleMs, masking: prepared.mask?.open(), mayPass })
}

/** To an authority of no backend no placeholder goes, in no frame. */
function searchOf({ ctx, line, socketed: { socket } }: Switch, upstream: Socket): (chunk: Buffer) => boolean {
  const search = openFrameSearch(ctx.rules().search)
  let isOver = false
  return (chunk) => {
    if (isOver) return false
    const found = search.push(chunk)
    if (found === undefined) return true
    isOver = true
    line.reason = 'bad_framing'
    if (found !== 'unreadable') {
      line.decision = 'misused'
      line.reason = 'elsewhere'
      line.placeholder = found.name
      line.backend = found.held.backend
    }
    reset(socket)
    reset(upstream)
    // Before anything that it may end: the alarm must not be lost with it.
    line.end()
    if (found !== 'unreadable') ctx.onMisuse(found.held)
    return false
  }
}
