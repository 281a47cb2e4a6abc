/**
 * The load generator, a worker thread that `loader.ts` starts: keep-alive sockets with one request in flight on each.
 * Requests are encoded beforehand and replies barely parsed, so that the server is the bottleneck.
 */
import { connect, type Socket } from 'node:net'
import type { RecordableHistogram } from 'node:perf_hooks'
import { parentPort } from 'node:worker_threads'
import { createLatencyHistogram, quantilesOf } from './latency.ts'

export interface LoadPlan {
  readonly port: number
  /** Encoded requests; connection i sends those whose index is i modulo the number of connections, round-robin. */
  readonly requests: readonly string[]
  readonly connections: number
  /** Load before the measurement begins. */
  readonly warmMs: number
  readonly measureMs: number
  /** The status that every reply must have. */
  readonly status: number
}

export interface LoadResult {
  readonly seconds: number
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Latencies in µs, within 0.1 %. */
  readonly histogram: RecordableHistogram
}

/** The messages of one run: the measurement begins, it ends, and then the result or an error. */
export type LoadMessage =
  | { readonly kind: 'begin' }
  | { readonly kind: 'end' }
  | { readonly kind: 'result'; readonly result: LoadResult }
  | { readonly kind: 'failed'; readonly message: string }

const READ_BYTES = 65_536
const LENGTH = /\r\ncontent-length: *(\d+)/i
const CLOSE = /\r\nconnection: *close/i
const RETURN = 13
const ZERO = 48

/** Offsets in the last complete reply of a connection: the next reply mostly has the same ones. */
interface Shape {
  headEnd: number
  lengthAt: number
  lengthDigits: number
}

interface Run {
  readonly plan: LoadPlan
  /** Called with the latency of each reply, in µs. */
  readonly onReply: (us: number) => void
  readonly onFault: (message: string) => void
  stopping: boolean
  readonly open: Set<Socket>
}

/** Keeps one connection busy, reconnecting as needed, until the run stops. Resolves after its last reply. */
function keepAsking(run: Run, requests: readonly Buffer[], first: number): Promise<void> {
  let next = first % requests.length
  return new Promise((resolve) => {
    const start = () => {
      let sentAt = 0
      let waiting = false
      let held: Buffer | undefined
      let renew = false
      const shape: Shape = { headEnd: 0, lengthAt: 0, lengthDigits: 0 }
      const take = (size: number, buffer: Uint8Array) => {
        if (held !== undefined || !isSameShape(run, shape, buffer, size)) {
          const fresh = Buffer.from(buffer.subarray(0, size))
          const bytes = held === undefined ? fresh : Buffer.concat([held, fresh])
          const whole = readReply(run, shape, bytes)
          held = whole === undefined ? bytes : undefined
          if (whole === undefined) return true
          renew = whole.close
        }
        waiting = false
        run.onReply((performance.now() - sentAt) * 1_000)
        if (run.stopping || renew) socket.end()
        else send()
        return true
      }
      const socket = connect({
        host: '127.0.0.1',
        port: run.plan.port,
        noDelay: true,
        onread: { buffer: Buffer.allocUnsafe(READ_BYTES), callback: take },
      })
      const send = () => {
        waiting = true
        sentAt = performance.now()
        socket.write(requests[next]!)
        next = (next + run.plan.connections) % requests.length
      }
      run.open.add(socket)
      socket.on('connect', send)
      socket.on('error', (error) => run.onFault(`a connection broke: ${error.message}`))
      socket.on('close', () => {
        run.open.delete(socket)
        if (waiting && !run.stopping) run.onFault('the server closed a connection without a reply')
        if (renew && !run.stopping) start()
        else resolve()
      })
    }
    start()
  })
}

/** Recognizes a complete reply with the planned status that keeps the connection open, without decoding it. */
function isSameShape(run: Run, shape: Shape, bytes: Uint8Array, size: number): boolean {
  const { headEnd, lengthAt, lengthDigits } = shape
  if (headEnd === 0 || size < headEnd + 4) return false
  if (bytes[headEnd] !== RETURN || bytes[headEnd + 2] !== RETURN) return false
  if (bytes[lengthAt + lengthDigits] !== RETURN) return false
  const { status } = run.plan
  const seen = ((bytes[9] ?? 0) - ZERO) * 100 + ((bytes[10] ?? 0) - ZERO) * 10 + ((bytes[11] ?? 0) - ZERO)
  if (seen !== status) return false
  let length = 0
  for (let n = 0; n < lengthDigits; n += 1) length = length * 10 + (bytes[lengthAt + n] ?? 0) - ZERO
  return size === headEnd + 4 + length
}

/** Undefined while the reply is incomplete. */
function readReply(run: Run, shape: Shape, bytes: Buffer): { close: boolean } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = bytes.toString('latin1', 0, headEnd + 2)
  const found = LENGTH.exec(head)
  const digits = found?.[1]
  if (found === null || digits === undefined) {
    run.onFault(`a reply without Content-Length: ${head}`)
    return { close: true }
  }
  if (bytes.length < headEnd + 4 + Number(digits)) return undefined
  if (Number(head.slice(9, 12)) !== run.plan.status) {
    run.onFault(`expected ${run.plan.status}, got: ${bytes.toString('utf8', 0, 1_000)}`)
  }
  const close = CLOSE.test(head)
  const lengthAt = found.index + found[0].length - digits.length
  Object.assign(shape, { headEnd: close ? 0 : headEnd, lengthAt, lengthDigits: digits.length })
  return { close }
}

async function runLoad(plan: LoadPlan, tell: (message: LoadMessage) => void): Promise<LoadResult> {
  const histogram = createLatencyHistogram()
  let counting = false
  let fault: string | undefined
  const run: Run = {
    plan,
    onReply: (us) => {
      if (counting) histogram.record(Math.max(1, Math.round(us)))
    },
    onFault: (message) => {
      fault ??= message
      run.stopping = true
      finish()
    },
    stopping: false,
    open: new Set(),
  }
  let began = 0
  let seconds = 0
  const { promise: over, resolve: finish } = Promise.withResolvers<void>()
  const timers = [
    setTimeout(() => {
      tell({ kind: 'begin' })
      began = performance.now()
      counting = true
    }, plan.warmMs),
    setTimeout(() => {
      counting = false
      seconds = (performance.now() - began) / 1_000
      tell({ kind: 'end' })
      run.stopping = true
      finish()
    }, plan.warmMs + plan.measureMs),
  ]
  const requests = plan.requests.map((text) => Buffer.from(text, 'latin1'))
  const connections = Array.from({ length: plan.connections }, (_, index) => keepAsking(run, requests, index))
  await over
  for (const timer of timers) clearTimeout(timer)
  const patience = setTimeout(() => {
    fault ??= 'no reply within 10 s'
    for (const socket of run.open) socket.destroy()
  }, 10_000)
  if (fault !== undefined) for (const socket of run.open) socket.destroy()
  await Promise.all(connections)
  clearTimeout(patience)
  if (fault !== undefined) throw new Error(fault)
  return { ...quantilesOf(histogram), seconds, perSecond: histogram.count / seconds, histogram }
}

const tell = (message: LoadMessage) => parentPort?.postMessage(message)
parentPort?.on('message', (plan: LoadPlan) => {
  runLoad(plan, tell).then(
    (result) => tell({ kind: 'result', result }),
    (error: unknown) => tell({ kind: 'failed', message: String((error as Error).message) }),
  )
})
