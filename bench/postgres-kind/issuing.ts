import type { Measured } from '../bare-roles.ts'
import { alternate, type Summary, summaryOf } from '../bursts.ts'
import type { Burst } from '../loader.ts'
import { median } from '../median.ts'
import { atLeast, atMost, type Row } from '../report.ts'
import type { Bench } from '../scenario.ts'
import { areGone, createBareRole, dropBareRoles } from './roles.ts'
import type { KindWorld } from './world.ts'

/** The verifier of fewer iterations costs PostgreSQL less, so that our own work has a larger share. */
const SHARE = { usual: 0.7, fewer: 0.3 }
const SHARE_CLIENTS = 8
const P50 = 1.5

export interface IssuePair {
  readonly ours: Burst
  readonly reference: Measured
}

/** Bursts of issuing that alternate with the bare statement at the same number of clients. */
export async function issueRows(
  bench: Bench,
  world: KindWorld,
  at: string,
  iterations: number,
  clients: number,
): Promise<Row[]> {
  const before = new Set(await world.roles())
  const agent = await world.newAgent()
  const seconds = bench.quick ? 1 : 5
  const issue = (burstMs: number) => agent.issue(clients, { warmMs: 200, burstMs })
  const bare = () => {
    const until = new Date(Date.now() + 3_600_000)
    const statements = (n: string) => [createBareRole(`bare_${n}`, iterations, until)]
    return world.bare.run({ n: 'random', statements }, clients, { seconds })
  }
  await issue(500)
  const pairs: IssuePair[] = []
  for (let n = 0; n < bench.pace.pairs; n += 1) {
    pairs.push(await alternate(n, () => issue(seconds * 1_000), bare))
    await dropBareRoles(world)
  }
  const made = (await world.roles()).filter((name) => !before.has(name))
  await agent.delete()
  await areGone(world, made)
  const rows = comparedRows(
    `Issue, ${at}, ${iterations} iterations`,
    clients,
    iterations,
    world.bare.tool,
    pairs,
  )
  for (const row of rows)
    bench.say(`${row.scenario}, ${clients} clients: ${row.comparedWith}, ratio ${row.ratio.toFixed(3)}`)
  return rows
}

/** Throughput, with a goal at eight clients, and for one client the median latency, with a goal at 4,096 iterations. */
export function comparedRows(
  scenario: string,
  clients: number,
  iterations: number,
  tool: string,
  pairs: readonly IssuePair[],
): Row[] {
  const ours: Summary = summaryOf(pairs.map((pair) => pair.ours))
  const of = (read: (one: Measured) => number) => median(pairs.map(({ reference }) => read(reference)))
  const bare = `p50 ${of((one) => one.p50).toFixed(2)}, p99 ${of((one) => one.p99).toFixed(2)} ms`
  const comparedWith = `bare CREATE ROLE (${tool}): ${of((one) => one.perSecond).toFixed(0)}/s, ${bare}`
  const ratios = pairs.map((pair) => pair.ours.perSecond / pair.reference.perSecond)
  const ratio = median(ratios)
  const goal = iterations < 4_096 ? SHARE.fewer : SHARE.usual
  const rows: Row[] = [
    {
      scenario,
      clients,
      figures: ours,
      comparedWith,
      ratio,
      goal: clients === SHARE_CLIENTS ? atLeast(ratio, goal) : undefined,
      detail: { ratios, bare: pairs.map((pair) => pair.reference) },
    },
  ]
  if (clients === 1) {
    const slower = median(pairs.map((pair) => pair.ours.p50 / pair.reference.p50))
    rows.push({
      scenario: `${scenario}: p50`,
      clients,
      figures: { p50: ours.p50 },
      comparedWith,
      ratio: slower,
      goal: iterations < 4_096 ? undefined : atMost(slower, P50),
    })
  }
  return rows
}
