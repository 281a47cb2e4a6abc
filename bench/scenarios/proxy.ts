import { burstsAgainst } from '../against.ts'
import { burstOf, type RunningTarget, summaryOf, watchMemory } from '../bursts.ts'
import { type Burst, type Loader, startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { usageOf } from '../processes.ts'
import {
  PLACEHOLDER,
  type Running,
  startBare,
  startNginx,
  startOurProxy,
  startUpstream,
} from '../proxy/start.ts'
import { download, upload } from '../proxy/transfer.ts'
import { atLeast, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import type { Checkout } from '../server.ts'

const GOAL_OF_BARE = 0.6
const GOAL_ADDED_MS = 0.25
const GOAL_OF_NGINX = 0.7
const GOAL_GROWTH_MB = 64
const CLIENTS = [1, 32]
const TITLE = 'Proxy, small replies'

/** Our proxy, a bare one of `node:http` and nginx before one upstream; ours puts a secret in, masks replies, and records each request. */
export const proxy: Scenario = {
  name: 'proxy',
  title: 'mayfly proxy',
  async run(bench) {
    const upstream = await startUpstream()
    const pace = { ...bench.pace, concurrencies: CLIENTS }
    const open = async ({ directory }: Checkout): Promise<RunningTarget> => {
      const running = await startOurProxy({ upstream: upstream.port, checkout: directory }, bench)
      return { ...targetOf(running), stop: async () => undefined }
    }
    if (bench.against !== undefined) return burstsAgainst(bench, bench.against, TITLE, open, pace)
    const start = { upstream: upstream.port, checkout: bench.checkout.directory }
    const ours = await startOurProxy(start, bench)
    const bare = await startBare(start)
    const nginx = await startNginx(start)
    if (nginx === undefined)
      bench.say('nginx is not installed: large bodies are compared with the bare proxy')
    const servers: Servers = { upstream, ours, bare, ...(nginx && { nginx }) }
    const loader = startLoader()
    const rows: Row[] = []
    for (const clients of CLIENTS)
      rows.push(...(await smallRows({ ...bench, pace }, servers, loader, clients)))
    rows.push(...(await largeRows(bench, servers)))
    return rows
  },
}

interface Servers {
  readonly upstream: Running
  readonly ours: Running
  readonly bare: Running
  readonly nginx?: Running
}

type Name = keyof Servers

function targetOf(running: Running) {
  const asks = [{ method: 'GET' as const, path: '/orders/42?page=2', bearer: PLACEHOLDER }]
  return { ...running, asks, status: 200 }
}

/** Bursts of all of them in turn, in another order each time. */
async function burstsOfAll(bench: Bench, servers: Servers, loader: Loader, clients: number) {
  const names = (Object.keys(servers) as Name[]).filter((name) => servers[name] !== undefined)
  const bursts = new Map<Name, Burst[]>(names.map((name) => [name, []]))
  for (const name of names) await burstOf(loader, targetOf(servers[name] as Running), 32, bench.pace)
  for (let n = 0; n < bench.pace.pairs; n += 1) {
    for (const [index] of names.entries()) {
      const name = names[(index + n) % names.length] as Name
      bursts.get(name)?.push(await burstOf(loader, targetOf(servers[name] as Running), clients, bench.pace))
    }
  }
  return bursts
}

async function smallRows(bench: Bench, servers: Servers, loader: Loader, clients: number): Promise<Row[]> {
  const bursts = await burstsOfAll(bench, servers, loader, clients)
  const of = (name: Name) => bursts.get(name) ?? []
  const against = (name: Name, figure: (ours: Burst, other: Burst) => number) =>
    median(
      of('ours').flatMap((ours, n) =>
        of(name)
          .slice(n, n + 1)
          .map((other) => figure(ours, other)),
      ),
    )
  const ratio = against('bare', (ours, other) => ours.perSecond / other.perSecond)
  const cpuRatio = against('bare', (ours, other) => cpuMicros(other) / cpuMicros(ours))
  const added = against('upstream', (ours, other) => ours.p50 - other.p50)
  const figures = Object.fromEntries([...bursts].map(([name, some]) => [name, summaryOf(some)]))
  const cpu = Object.fromEntries([...bursts].map(([name, some]) => [name, median(some.map(cpuMicros))]))
  const shown = [...bursts.keys()]
    .filter((name) => name !== 'ours')
    .map((name) => described(name, of(name)))
    .join('; ')
  bench.say(`${clients} clients: ours ${described('', of('ours'))}; ${shown}; ratio ${ratio.toFixed(3)}`)
  const row: Row = {
    ...{ scenario: TITLE, clients, figures: summaryOf(of('ours')), comparedWith: shown, ratio, cpuRatio },
    goal: atLeast(ratio, GOAL_OF_BARE),
    detail: { figures, cpuMicros: cpu },
  }
  return clients === 1 ? [row, addedRow(added, of)] : [row]
}

/** To the latency of the upstream, on connections that are open already. */
function addedRow(added: number, of: (name: Name) => readonly Burst[]): Row {
  const by = (name: Name) =>
    median(of(name).map(({ p50 }, n) => p50 - (of('upstream')[n]?.p50 ?? Number.NaN)))
  return {
    ...{ scenario: 'Proxy, time added (p50)', clients: 1, figures: { p50: added } },
    comparedWith: `bare adds ${by('bare').toFixed(3)}, nginx ${by('nginx').toFixed(3)} ms`,
    ratio: added / by('bare'),
    goal: { text: `≤ ${GOAL_ADDED_MS} ms`, holds: added <= GOAL_ADDED_MS },
  }
}

function described(name: string, bursts: readonly Burst[]): string {
  const { perSecond, p50, p99 } = summaryOf(bursts)
  const cpu = median(bursts.map(cpuMicros))
  return `${name} ${perSecond.toFixed(0)}/s, p50 ${p50.toFixed(3)}, p99 ${p99.toFixed(2)} ms, CPU ${cpu.toFixed(0)} µs`.trim()
}

/** CPU time of one request. */
function cpuMicros({ cores, perSecond }: Burst): number {
  return ((cores ?? Number.NaN) / perSecond) * 1_000_000
}

const MEGABYTE = 1_000_000

async function largeRows(bench: Bench, servers: Servers): Promise<Row[]> {
  const bytes = bench.quick ? 64 * MEGABYTE : 1_024 * MEGABYTE
  const times = bench.quick ? 1 : 3
  const rows: Row[] = []
  for (const { title, goal, move } of MOVES) {
    rows.push(await largeRow(bench, servers, { title, goal, times, move: (port) => move(port, bytes) }))
  }
  return rows
}

interface Move {
  readonly title: string
  /** Of nginx. */
  readonly goal: number | undefined
  readonly move: (port: number, bytes: number) => Promise<number>
}

const MOVES: readonly Move[] = [
  { title: 'down', goal: GOAL_OF_NGINX, move: (port, bytes) => download(port, '/down', bytes) },
  { title: 'up', goal: GOAL_OF_NGINX, move: (port, bytes) => upload(port, '/up', bytes) },
  // nginx does not look for secrets.
  {
    title: 'down, text that is searched',
    goal: undefined,
    move: (port, bytes) => download(port, '/text', bytes),
  },
]

interface Large {
  readonly title: string
  readonly goal: number | undefined
  readonly times: number
  move(port: number): Promise<number>
}

/** MB per second, the median of several; and the memory of ours meanwhile. */
async function largeRow(bench: Bench, servers: Servers, { title, goal, times, move }: Large): Promise<Row> {
  const { ours, bare, nginx } = servers
  const speeds = { ours: [] as number[], bare: [] as number[], nginx: [] as number[] }
  const before = usageOf(ours.pid)
  let highest = 0
  for (let n = 0; n < times; n += 1) {
    if (nginx !== undefined) speeds.nginx.push(await move(nginx.port))
    const memory = await watchMemory(ours.pid, async () => {
      speeds.ours.push(await move(ours.port))
    })
    highest = Math.max(highest, memory ?? Number.NaN)
    speeds.bare.push(await move(bare.port))
  }
  const [own, other] = [speeds.ours, nginx === undefined ? speeds.bare : speeds.nginx].map(median)
  const ratio = (own ?? Number.NaN) / (other ?? Number.NaN)
  const growth = highest - (before?.rssMb ?? Number.NaN)
  const shown = [
    ...(nginx === undefined ? [] : [`nginx ${median(speeds.nginx).toFixed(0)} MB/s`]),
    `bare ${median(speeds.bare).toFixed(0)} MB/s`,
    `memory grows by ${growth.toFixed(0)} MB (≤ ${GOAL_GROWTH_MB}: ${growth <= GOAL_GROWTH_MB ? 'yes' : 'no'})`,
  ].join('; ')
  bench.say(`${title}: ${own?.toFixed(0)} MB/s; ${shown}; ratio ${ratio.toFixed(2)}`)
  return {
    scenario: `Proxy, 1 GB ${title} (MB/s)`,
    clients: 1,
    figures: { perSecond: own ?? Number.NaN, rssMb: highest },
    ...{ comparedWith: shown, ratio },
    goal: goal === undefined || nginx === undefined ? undefined : atLeast(ratio, goal),
    detail: { speeds, growthMb: growth },
  }
}
