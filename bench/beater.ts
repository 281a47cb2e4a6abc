/** Runs that beat, a worker thread: a steady rate of heartbeats over some keep-alive sockets, whatever the server's pace. */
import { connect } from 'node:net'
import { parentPort } from 'node:worker_threads'

export interface BeatPlan {
  readonly port: number
  /** Encoded requests, one for each run. */
  readonly requests: readonly string[]
  /** Each is sent once in this time. */
  readonly everyMs: number
}

const SOCKETS = 32
const TICK_MS = 10
const GOOD = 'HTTP/1.1 200'

/** Posts how many replies came, and the first that was no success. */
export interface Beaten {
  readonly sent: number
  readonly good: number
  readonly bad: string | undefined
}

parentPort?.once('message', ({ port, requests, everyMs }: BeatPlan) => {
  let [sent, good] = [0, 0]
  let bad: string | undefined
  const sockets = Array.from({ length: SOCKETS }, () => connect({ port, host: '127.0.0.1', noDelay: true }))
  for (const socket of sockets) {
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      const found = text.split(GOOD).length - 1
      good += found
      if (found === 0 && text.startsWith('HTTP/1.1 ')) bad ??= text.slice(0, 300)
    })
    socket.on('error', (error) => {
      bad ??= error.message
    })
  }
  const began = performance.now()
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / everyMs) * requests.length)
    for (; sent < due; sent += 1) sockets[sent % SOCKETS]?.write(requests[sent % requests.length] ?? '')
  }, TICK_MS)
  parentPort?.once('message', () => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
    parentPort?.postMessage({ sent, good, bad } satisfies Beaten)
  })
})
