import { connect } from 'node:net'
import { alternatePairs, figureOf } from '../against.ts'
import { watchMemory } from '../bursts.ts'
import { startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { againstRow, atMost, type Row } from '../report.ts'
import { encode, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { BACKEND, type Checkout, type OurServer, SCOPES, startOurs } from '../server.ts'
import { type LargeStore, largeStore } from '../stores.ts'

const READY_MS = 1_000
const MEMORY_MB = 250
const CLIENTS = 256

/** From the start of the process to the first 200 of `/readyz`, then the highest memory under load. */
export const startUp: Scenario = {
  name: 'start-up',
  title: 'Start',
  async run(bench) {
    const rows: Row[] = []
    for (const title of ['SQLite', 'PostgreSQL'] as const) {
      const ours = await filledStore(bench, bench.checkout, title)
      rows.push(
        ...(bench.against === undefined
          ? await rowsOf(bench, ours)
          : await rowsAgainst(bench, bench.against, ours)),
      )
    }
    return rows
  },
}

interface Filled {
  readonly store: LargeStore
  readonly checkout: Checkout
  readonly credentials: number
}

async function filledStore(bench: Bench, checkout: Checkout, title: LargeStore['title']): Promise<Filled> {
  const credentials = bench.quick ? 20_000 : 1_000_000
  const amounts = { agents: 1_000, entries: credentials, credentials }
  return { store: await largeStore({ ...bench, checkout }, title, amounts), checkout, credentials }
}

const readyTitle = ({ store, credentials }: Filled) =>
  `Ready after the start, ${store.title}, ${credentials} credentials`
const memoryTitle = ({ store }: Filled) => `Memory while issuing, ${store.title}`
const startsOf = (bench: Bench) => (bench.quick ? 2 : 5)

async function rowsOf(bench: Bench, ours: Filled): Promise<Row[]> {
  const taken: number[] = []
  for (let n = 0; n < startsOf(bench); n += 1) taken.push(await timedStart(bench, ours))
  const ms = median(taken)
  bench.say(`${readyTitle(ours)}: ${taken.map((one) => one.toFixed(0)).join(' ')} ms`)
  const ready: Row = {
    scenario: readyTitle(ours),
    clients: undefined,
    figures: { p50: ms },
    comparedWith: `${READY_MS} ms`,
    ratio: ms / READY_MS,
    goal: atMost(ms / READY_MS, 1),
    detail: { taken },
  }
  const withFlags = await memoryUnderLoad(bench, ours)
  const withoutFlags = await memoryUnderLoad({ ...bench, heapFlags: [] }, ours)
  return [
    ready,
    { ...memoryRow(memoryTitle(ours), withFlags), goal: atMost(withFlags.rssMb / MEMORY_MB, 1) },
    memoryRow(`${memoryTitle(ours)}, without heap flags`, withoutFlags),
  ]
}

async function rowsAgainst(bench: Bench, against: Checkout, ours: Filled): Promise<Row[]> {
  const reference = await filledStore(bench, against, ours.store.title)
  const starts = await alternatePairs(startsOf(bench), {
    ours: () => timedStart(bench, ours),
    reference: () => timedStart(bench, reference),
  })
  const memory = await alternatePairs(Math.min(3, bench.pace.pairs), {
    ours: () => memoryUnderLoad(bench, ours),
    reference: () => memoryUnderLoad(bench, reference),
  })
  const rssMb = figureOf(memory, (one) => one.rssMb)
  return [
    againstRow(readyTitle(ours), against.directory, starts, 'ms'),
    againstRow(memoryTitle(ours), against.directory, rssMb, 'MB'),
  ]
}

async function timedStart(bench: Bench, { store, checkout }: Filled): Promise<number> {
  const began = performance.now()
  let ready: number | undefined
  const server = await startOurs({
    ...bench,
    ...store,
    checkout,
    onPort: async (port) => {
      await untilReady(port)
      ready = performance.now()
    },
  })
  await server.stop()
  return (ready ?? performance.now()) - began
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
    const answer = (listening: boolean) => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', () => answer(true))
    socket.once('error', () => answer(false))
  })
}

type Memory = Row['figures'] & { readonly rssMb: number }

async function memoryUnderLoad(
  options: Bench & { heapFlags?: readonly string[] },
  { store, checkout }: Filled,
): Promise<Memory> {
  const server: OurServer = await startOurs({ ...options, ...store, checkout })
  const loader = startLoader()
  const json = { backend: BACKEND, ttl: '1h', scopes: SCOPES }
  const requests = store.tokens.map((bearer) =>
    encode({ method: 'POST', path: '/api/v1/credentials', bearer, json }, server.port),
  )
  const measureMs = options.quick ? 1_000 : 10_000
  const plan = { port: server.port, requests, connections: CLIENTS, warmMs: 500, measureMs, status: 201 }
  let figures: Row['figures'] = {}
  const highest = await watchMemory(server.pid, async () => {
    const { perSecond, p50, p95, p99, cores } = await loader.run(plan, server.pid)
    figures = { perSecond, p50, p95, p99, cores }
  })
  await server.stop()
  return { ...figures, rssMb: highest ?? Number.NaN }
}

function memoryRow(scenario: string, figures: Memory): Row {
  return {
    scenario,
    clients: CLIENTS,
    figures,
    comparedWith: `${MEMORY_MB} MB`,
    ratio: figures.rssMb / MEMORY_MB,
    goal: undefined,
  }
}
