/** Runs that beat, a worker thread: a steady rate of heartbeats over some keep-alive sockets, one at a time on each. */
import { connect, type Socket } from 'node:net'
import { parentPort } from 'node:worker_threads'

export interface BeatPlan {
  readonly port: number
  /** Each run beats once in this time. */
  readonly everyMs: number
}

/** Encoded requests of runs that beat from now on, a pause of all of them, or the end. */
export type BeatMessage = { readonly requests: readonly string[] } | 'pause' | 'resume' | 'stop'

/** How many replies came, and the first that was no success. */
export interface Beaten {
  readonly sent: number
  readonly good: number
  readonly bad: string | undefined
}

const SOCKETS = 64
const TICK_MS = 10
const GOOD = 'HTTP/1.1 200'
const CLOSE = /\r\nconnection: close/i

parentPort?.once('message', ({ port, everyMs }: BeatPlan) => {
  const requests: string[] = []
  const idle: Socket[] = []
  const open = new Set<Socket>()
  let [sent, good] = [0, 0]
  let bad: string | undefined
  let isStopping = false
  let isPaused = false

  function add(): void {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    open.add(socket)
    socket.setEncoding('latin1')
    socket.once('connect', () => idle.push(socket))
    // The reply is small: it comes as one piece.
    socket.on('data', (text: string) => {
      if (text.startsWith(GOOD)) good += 1
      else bad ??= text
      if (CLOSE.test(text)) socket.end()
      else idle.push(socket)
    })
    socket.on('error', (error) => {
      if (!isStopping) bad ??= error.message
    })
    socket.once('close', () => {
      open.delete(socket)
      const at = idle.indexOf(socket)
      if (at >= 0) idle.splice(at, 1)
      if (!isStopping) add()
    })
  }

  for (let n = 0; n < SOCKETS; n += 1) add()
  let due = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    if (!isPaused) due += ((now - last) / everyMs) * requests.length
    last = now
    while (sent + 1 <= due) {
      const socket = idle.shift()
      if (socket === undefined) return
      socket.write(requests[sent % requests.length] ?? '')
      sent += 1
    }
  }, TICK_MS)
  parentPort?.on('message', (message: BeatMessage) => {
    if (message !== 'stop') {
      if (typeof message === 'object') requests.push(...message.requests)
      else isPaused = message === 'pause'
      return
    }
    isStopping = true
    clearInterval(timer)
    for (const socket of open) socket.destroy()
    parentPort?.postMessage({ sent, good, bad } satisfies Beaten)
  })
})
