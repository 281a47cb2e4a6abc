/** Measures two servers with short bursts of load that alternate, so that both see the same state of the machine. */
import type { RecordedReply } from './baseline.ts'
import { type Burst, type Loader, startLoader } from './loader.ts'
import { median } from './median.ts'
import { forkHere, onExit, stop, usageOf } from './processes.ts'
import { type Ask, encode, record } from './request.ts'

/** How many bursts to run, and for how long. */
export interface Pace {
  /** Bursts of each server at every concurrency. */
  readonly pairs: number
  readonly warmMs: number
  readonly burstMs: number
  readonly concurrencies: readonly number[]
}

/** Medians over the bursts. */
export interface Summary {
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly cores: number | undefined
  readonly rssMb: number | undefined
  /** Median of p99 ÷ p50 in each burst. */
  readonly tail: number
}

/** The result of alternating bursts at one concurrency. */
export interface Comparison {
  readonly clients: number
  readonly ours: Summary
  readonly reference: Summary
  /** Our throughput ÷ that of the reference, for each pair. */
  readonly ratios: readonly number[]
  /** Median of `ratios`. */
  readonly ratio: number
  /** CPU time per request of the reference ÷ ours, median of the pairs; undefined without /proc. */
  readonly cpuRatio: number | undefined
}

/** A server and the requests to send to it. */
export interface Target {
  readonly pid: number
  readonly port: number
  /** From different agents; each connection repeats one of them. */
  readonly asks: readonly Ask[]
  /** The status that every reply must have. */
  readonly status: number
}

export interface RunningTarget extends Target {
  stop(): Promise<void>
}

/** Starts a bare server that sends the same reply to the same requests; `signs` makes it sign first. */
export async function startBaseline(like: Target, signs?: RecordedReply['signs']): Promise<RunningTarget> {
  const { asks, status } = like
  const reply = await record(asks[0]!, like.port)
  if (reply.status !== status) throw new Error(`${asks[0]!.path} answered ${reply.status}: ${reply.body}`)
  const child = forkHere('baseline.ts')
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('message', (message: { port: number }) => resolve(message.port))
  child.once('exit', () => reject(new Error('the baseline server ended early')))
  child.send({ ...reply, ...(signs === undefined ? {} : { signs }) })
  return { asks, status, port: await promise, pid: child.pid!, stop: () => stop(child) }
}

/** Alternates bursts against both servers, at every concurrency of the pace. */
export async function alternateBursts(
  label: string,
  ours: Target,
  reference: Target,
  pace: Pace,
  say: (line: string) => void,
  beforePair: () => void = () => undefined,
): Promise<Comparison[]> {
  const loader = startLoader()
  const burst = (target: Target, clients: number) => burstOf(loader, target, clients, pace)
  // Let V8 compile both servers before the first measurement.
  for (const target of [reference, ours]) await burst(target, 32)
  const comparisons: Comparison[] = []
  for (const clients of pace.concurrencies) {
    const pairs: Pair[] = []
    for (let n = 0; n < pace.pairs; n += 1) {
      beforePair()
      pairs.push(
        await alternate(
          n,
          () => burst(ours, clients),
          () => burst(reference, clients),
        ),
      )
    }
    const comparison = comparisonOf(clients, pairs)
    say(`${label}, ${clients} clients: ${described(comparison)}`)
    comparisons.push(comparison)
  }
  return comparisons
}

/** One measurement of each, the first one changing from pair to pair. */
export async function alternate<T, R = T>(
  n: number,
  ours: () => Promise<T>,
  reference: () => Promise<R>,
): Promise<{ ours: T; reference: R }> {
  if (n % 2 === 1) return { ours: await ours(), reference: await reference() }
  const first = await reference()
  return { ours: await ours(), reference: first }
}

export function burstOf(
  loader: Loader,
  target: Target,
  clients: number,
  { warmMs, burstMs }: Pick<Pace, 'warmMs' | 'burstMs'>,
): Promise<Burst> {
  const { port, pid, status } = target
  const requests = target.asks.map((ask) => encode(ask, port))
  return loader.run({ port, requests, connections: clients, warmMs, measureMs: burstMs, status }, pid)
}

export type Pair = Readonly<Record<'ours' | 'reference', Burst>>

export function comparisonOf(clients: number, pairs: readonly Pair[]): Comparison {
  const ratios = pairs.map((pair) => pair.ours.perSecond / pair.reference.perSecond)
  return {
    clients,
    ours: summaryOf(pairs.map((pair) => pair.ours)),
    reference: summaryOf(pairs.map((pair) => pair.reference)),
    ratios,
    ratio: median(ratios),
    cpuRatio: median(pairs.map((pair) => cpuPerRequest(pair.reference) / cpuPerRequest(pair.ours))),
  }
}

export function described({ ours, reference, ratio, cpuRatio, ratios }: Comparison): string {
  const pairs = ratios.map((one) => one.toFixed(2)).join(' ')
  return `${ours.perSecond.toFixed(0)}/s of ${reference.perSecond.toFixed(0)}/s, ratio ${ratio.toFixed(3)}, CPU ratio ${cpuRatio?.toFixed(3)} (${pairs})`
}

/** In core seconds. */
function cpuPerRequest(burst: Burst): number {
  return (burst.cores ?? Number.NaN) / burst.perSecond
}

export function summaryOf(bursts: readonly Burst[]): Summary {
  const of = (read: (burst: Burst) => number | undefined) => median(bursts.map((b) => read(b) ?? Number.NaN))
  const known = bursts.every((burst) => burst.cores !== undefined)
  return {
    perSecond: of((burst) => burst.perSecond),
    p50: of((burst) => burst.p50),
    p95: of((burst) => burst.p95),
    p99: of((burst) => burst.p99),
    cores: known ? of((burst) => burst.cores) : undefined,
    rssMb: known ? of((burst) => burst.rssMb) : undefined,
    tail: of((burst) => burst.p99 / burst.p50),
  }
}

/** The highest resident memory of a process during the work, in MB. */
export async function watchMemory(pid: number, work: () => Promise<void>): Promise<number | undefined> {
  let highest = usageOf(pid)?.rssMb
  const timer = setInterval(() => {
    highest = Math.max(highest ?? 0, usageOf(pid)?.rssMb ?? 0)
  }, 50)
  onExit(() => clearInterval(timer))
  await work()
  clearInterval(timer)
  return highest
}
