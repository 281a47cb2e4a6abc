import type { RecordedReply } from './floor.ts'
import { median } from './histogram.ts'
import { type Burst, type Loader, startLoader } from './loader.ts'
import { forkHere, onExit, stop, usageOf } from './processes.ts'
import { type Ask, encode, record } from './request.ts'

/** How long everything takes. */
export interface Pace {
  /** Bursts of the floor and of ours, one after the other. */
  readonly pairs: number
  readonly warmMs: number
  readonly burstMs: number
  readonly concurrencies: readonly number[]
}

export interface Summary {
  /** Medians over the bursts. */
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly cores: number | undefined
  readonly rssMb: number | undefined
  /** Median of p99 ÷ p50 in each burst. */
  readonly tail: number
}

export interface Turns {
  readonly clients: number
  readonly floor: Summary
  readonly ours: Summary
  /** Ours ÷ floor in throughput, of each pair and their median. */
  readonly ratios: readonly number[]
  readonly ratio: number
  /** CPU time of the floor for one request ÷ ours, the same way; undefined where there is no /proc. */
  readonly cpuRatio: number | undefined
}

export interface Floor {
  readonly pid: number
  readonly port: number
  stop(): Promise<void>
}

export async function startFloor(reply: RecordedReply): Promise<Floor> {
  const child = forkHere('floor.ts')
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('message', (message: { port: number }) => resolve(message.port))
  child.once('exit', () => reject(new Error('the floor ended early')))
  child.send(reply)
  return { port: await promise, pid: child.pid!, stop: () => stop(child) }
}

export interface Contest {
  readonly pid: number
  readonly port: number
  /** Of different agents; each connection repeats one. */
  readonly asks: readonly Ask[]
  readonly status: number
}

/** Ours and the floor that answers the same, in turns, at every concurrency of the pace. */
export async function takeTurns(
  label: string,
  ours: Contest,
  pace: Pace,
  say: (line: string) => void,
  /** Called before each pair: a floor of another sort. */
  beforePair: () => void = () => undefined,
): Promise<Turns[]> {
  const first = ours.asks[0]!
  const reply = await record(first, ours.port)
  if (reply.status !== ours.status) throw new Error(`${label} answered ${reply.status}: ${reply.body}`)
  const floor = await startFloor(reply)
  const loader = startLoader()
  const done: Turns[] = []
  const at = (target: { pid: number; port: number }, clients: number, ms: number) =>
    burstOf(loader, target, ours, clients, pace.warmMs, ms)
  // Both compiled before anything is measured.
  for (const target of [floor, ours]) await at(target, 32, pace.burstMs)
  for (const clients of pace.concurrencies) {
    const pairs: { floor: Burst; ours: Burst }[] = []
    for (let n = 0; n < pace.pairs; n += 1) {
      beforePair()
      pairs.push({
        floor: await at(floor, clients, pace.burstMs),
        ours: await at(ours, clients, pace.burstMs),
      })
    }
    const turns = summarize(clients, pairs)
    say(
      `${label}, ${clients} clients: ${turns.ours.perSecond.toFixed(0)}/s of ${turns.floor.perSecond.toFixed(0)}/s, ratio ${turns.ratio.toFixed(3)}, by CPU ${turns.cpuRatio?.toFixed(3)} (${turns.ratios.map((one) => one.toFixed(2)).join(' ')})`,
    )
    done.push(turns)
  }
  await floor.stop()
  return done
}

function burstOf(
  loader: Loader,
  target: { pid: number; port: number },
  contest: Pick<Contest, 'asks' | 'status'>,
  clients: number,
  warmMs: number,
  measureMs: number,
): Promise<Burst> {
  const requests = contest.asks.map((ask) => encode(ask, target.port))
  const { port, pid } = target
  return loader.run({ port, requests, connections: clients, warmMs, measureMs, status: contest.status }, pid)
}

function summarize(clients: number, pairs: readonly { floor: Burst; ours: Burst }[]): Turns {
  const ratios = pairs.map((pair) => pair.ours.perSecond / pair.floor.perSecond)
  return {
    clients,
    floor: summaryOf(pairs.map((pair) => pair.floor)),
    ours: summaryOf(pairs.map((pair) => pair.ours)),
    ratios,
    ratio: median(ratios),
    cpuRatio: median(pairs.map((pair) => cpuEach(pair.floor) / cpuEach(pair.ours))),
  }
}

/** Core seconds for one request. */
function cpuEach(burst: Burst): number {
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

/** The most memory that a process was seen with while the work was done, in MB. */
export async function watchMemory(pid: number, work: () => Promise<void>): Promise<number | undefined> {
  let most = usageOf(pid)?.rssMb
  const timer = setInterval(() => {
    most = Math.max(most ?? 0, usageOf(pid)?.rssMb ?? 0)
  }, 50)
  onExit(() => clearInterval(timer))
  await work()
  clearInterval(timer)
  return most
}
