import { connect } from 'node:net'
import { median } from '../histogram.ts'
import { startLoader } from '../loader.ts'
import { atMost, type Row } from '../report.ts'
import { encode, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { BACKEND, type OurServer, SCOPES, startOurs } from '../server.ts'
import { type LargeStore, largeStore } from '../stores.ts'
import { watchMemory } from '../turns.ts'

const READY_MS = 1_000
const MEMORY_MB = 250
const CLIENTS = 256

/** From the start of the process to the first 200 of `/readyz`, and the most memory under load after it. */
export const startUp: Scenario = {
  name: 'start-up',
  title: 'Start',
  async run(bench) {
    const rows: Row[] = []
    for (const title of ['SQLite', 'PostgreSQL'] as const) {
      const credentials = bench.quick ? 20_000 : 1_000_000
      const store = await largeStore(bench, title, { agents: 1_000, entries: credentials, credentials })
      const taken: number[] = []
      for (let n = 0; n < (bench.quick ? 2 : 5); n += 1) {
        const { server, ms } = await timedStart(bench, store)
        taken.push(ms)
        await server.stop()
      }
      const ms = median(taken)
      bench.say(
        `start, ${title}, ${credentials} credentials: ${taken.map((one) => one.toFixed(0)).join(' ')} ms`,
      )
      rows.push({
        scenario: `Ready after the start, ${title}, ${credentials} credentials`,
        clients: undefined,
        figures: { p50: ms },
        floor: `${READY_MS} ms`,
        ratio: ms / READY_MS,
        goal: atMost(ms / READY_MS, 1),
        detail: { taken },
      })
      rows.push(await memoryUnderLoad(bench, store))
    }
    return rows
  },
}

async function timedStart(bench: Bench, store: LargeStore): Promise<{ server: OurServer; ms: number }> {
  const began = performance.now()
  let ready: number | undefined
  const server = await startOurs({
    ...bench,
    ...store,
    onPort: async (port) => {
      await untilReady(port)
      ready = performance.now()
    },
  })
  return { server, ms: (ready ?? performance.now()) - began }
}

async function untilReady(port: number): Promise<void> {
  for (;;) {
    if (await isListening(port)) {
      const { status } = await record({ method: 'GET', path: '/readyz' }, port)
      if (status === 200) return
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    const say = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => say(true))
    socket.once('error', () => say(false))
  })
}

async function memoryUnderLoad(bench: Bench, store: LargeStore): Promise<Row> {
  const server = await startOurs({ ...bench, ...store })
  const loader = startLoader()
  const json = { backend: BACKEND, ttl: '1h', scopes: SCOPES }
  const requests = store.tokens.map((bearer) =>
    encode({ method: 'POST', path: '/api/v1/credentials', bearer, json }, server.port),
  )
  const measureMs = bench.quick ? 1_000 : 10_000
  const plan = { port: server.port, requests, connections: CLIENTS, warmMs: 500, measureMs, status: 201 }
  let figures: Row['figures'] = {}
  const most = await watchMemory(server.pid, async () => {
    figures = await loader.run(plan, server.pid)
  })
  await server.stop()
  const ratio = (most ?? Number.NaN) / MEMORY_MB
  return {
    scenario: `Memory while issuing, ${store.title}`,
    clients: CLIENTS,
    figures: { ...figures, rssMb: most },
    floor: `${MEMORY_MB} MB`,
    ratio,
    goal: atMost(ratio, 1),
  }
}
