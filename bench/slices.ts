import { createLatencyHistogram, quantilesOf } from './latency.ts'
import type { Burst, Loader } from './loader.ts'
import { atMost, type Row } from './report.ts'
import { type Ask, encode } from './request.ts'
import type { OurServer } from './server.ts'

/** A short burst of load, so that those within an event can be picked out afterwards. */
export interface Slice extends Burst {
  /** Epoch ms. */
  readonly from: number
  readonly to: number
}

export interface SliceOptions {
  readonly loader: Loader
  readonly server: OurServer
  readonly asks: readonly Ask[]
  readonly clients: number
  readonly quick: boolean
}

/** Issues in slices until there is no time for another one before `end`. */
export function issueUntil(end: number, options: SliceOptions): Promise<Slice[]> {
  return issueWhile((nextEnd) => nextEnd < end, options)
}

/** Issues in slices; `goesOn` gets the time at which the next one would end. */
export async function issueWhile(
  goesOn: (nextEnd: number) => boolean,
  { loader, server, asks, clients, quick }: SliceOptions,
): Promise<Slice[]> {
  const { port, pid } = server
  const [warmMs, measureMs] = quick ? [20, 100] : [50, 450]
  const requests = asks.map((ask) => encode(ask, port))
  const plan = { port, requests, connections: clients, warmMs, measureMs, status: 201 }
  const slices: Slice[] = []
  while (goesOn(Date.now() + warmMs + measureMs)) {
    const from = Date.now() + warmMs
    slices.push({ ...(await loader.run(plan, pid)), from, to: from + measureMs })
  }
  return slices
}

const GOAL_TAIL = 2

/** Issuing before an event, and while it lasts. */
export interface Beside {
  readonly quiet: Issuing
  readonly during: Issuing
}

/** Holds the p99 of issuing during an event against the quiet one. */
export function tailRow(scenario: string, clients: number, { quiet, during }: Beside): Row {
  const tail = during.p99 / quiet.p99
  const alone = `${quiet.perSecond.toFixed(0)}/s, p50 ${quiet.p50.toFixed(2)}, p99 ${quiet.p99.toFixed(2)} ms`
  return {
    scenario,
    clients,
    figures: during,
    comparedWith: `quiet: ${alone}`,
    ratio: tail,
    goal: atMost(tail, GOAL_TAIL),
    detail: { quiet, during },
  }
}

/** What the clients saw in all of them. */
export type Issuing = Record<'p50' | 'p95' | 'p99' | 'perSecond', number>

export function merged(slices: readonly Slice[]): Issuing {
  const all = createLatencyHistogram()
  for (const slice of slices) all.add(slice.histogram)
  const seconds = slices.reduce((sum, one) => sum + one.seconds, 0)
  return { ...quantilesOf(all), perSecond: all.count / seconds }
}
