import { alternate, summaryOf } from '../bursts.ts'
import { createLatencyHistogram, quantilesOf } from '../latency.ts'
import type { Burst } from '../loader.ts'
import { median } from '../median.ts'
import { atLeast, atMost, type Row } from '../report.ts'
import type { Bench } from '../scenario.ts'
import { addBareRoles, areGone, dropBareRoles, fill } from './roles.ts'
import type { KindAgent, KindWorld } from './world.ts'

const CLIENTS = 8
const SHARE = 0.5
const TAIL = 2
/** Credentials that are revoked at once, of one agent that is deleted. */
const COUNT = { quick: 40, full: 5_000 }

/** Revocations beside the bare statements, and what they do to the latency of issuing. */
export async function revocationRows(bench: Bench, world: KindWorld, at: string): Promise<Row[]> {
  const count = bench.quick ? COUNT.quick : COUNT.full
  const pairs: { ours: number; reference: number }[] = []
  for (let n = 0; n < Math.min(3, bench.pace.pairs); n += 1) {
    pairs.push(
      await alternate(
        n,
        () => revoked(world, count),
        () => bareRevoked(world, count),
      ),
    )
  }
  const ratio = median(pairs.map((pair) => pair.ours / pair.reference))
  const bare = median(pairs.map((pair) => pair.reference))
  bench.say(`revoking ${count}, ${at}: ratio ${ratio.toFixed(3)}`)
  const rows: Row[] = [
    {
      scenario: `Revoke ${count}, ${at}`,
      clients: undefined,
      figures: { perSecond: median(pairs.map((pair) => pair.ours)) },
      comparedWith: `bare ALTER ROLE and DROP ROLE (${world.bare.tool}, ${CLIENTS} clients): ${bare.toFixed(0)}/s`,
      ratio,
      goal: atLeast(ratio, SHARE),
      detail: { pairs },
    },
  ]
  for (const clients of bench.kind.clients) rows.push(await besideRow(bench, world, at, count, clients))
  return rows
}

/** Per second: the agent of these credentials is deleted, until the last role is gone. */
async function revoked(world: KindWorld, count: number): Promise<number> {
  const agent = await world.newAgent()
  const roles = await fill(world, agent, count)
  const began = performance.now()
  await agent.delete()
  await areGone(world, roles)
  return (roles.length / (performance.now() - began)) * 1_000
}

async function bareRevoked(world: KindWorld, count: number): Promise<number> {
  const times = Math.floor(count / CLIENTS)
  await addBareRoles(world, times * CLIENTS)
  const statements = (n: string) => [`ALTER ROLE bare_${n} NOLOGIN`, `DROP ROLE bare_${n}`]
  const { perSecond } = await world.bare.run({ n: 'next', statements }, CLIENTS, { times })
  await dropBareRoles(world)
  return perSecond
}

/** Issuing while another agent's credentials are revoked, beside issuing alone. */
async function besideRow(
  bench: Bench,
  world: KindWorld,
  at: string,
  count: number,
  clients: number,
): Promise<Row> {
  const before = new Set(await world.roles())
  const [ending, issuing] = [await world.newAgent(), await world.newAgent()]
  const quiet = await issuing.issue(clients, { warmMs: 500, burstMs: bench.quick ? 500 : 10_000 })
  const roles = await fill(world, ending, count)
  const during = await issueUntil(issuing, clients, async () => {
    await ending.delete()
    await areGone(world, roles)
  })
  const made = (await world.roles()).filter((name) => !before.has(name))
  await issuing.delete()
  await areGone(world, made)
  const ratio = during.p99 / quiet.p99
  const alone = `${quiet.perSecond.toFixed(0)}/s, p50 ${quiet.p50.toFixed(2)}, p99 ${quiet.p99.toFixed(2)} ms`
  bench.say(
    `issuing meanwhile, ${at}, ${clients} clients: p99 ${during.p99.toFixed(2)} of ${quiet.p99.toFixed(2)} ms`,
  )
  return {
    scenario: `Issue while ${count} are revoked: p99, ${at}`,
    clients,
    figures: during,
    comparedWith: `alone: ${alone}`,
    ratio,
    goal: atMost(ratio, TAIL),
    detail: { revoked: roles.length },
  }
}

/** Short bursts while the work lasts; the one that outlasts it does not count, unless it is the only one. */
async function issueUntil(agent: KindAgent, clients: number, work: () => Promise<void>) {
  let over = false
  const working = work().finally(() => {
    over = true
  })
  const bursts: Burst[] = []
  while (!over) {
    const burst = await agent.issue(clients, { warmMs: 0, burstMs: 250 })
    if (!over || bursts.length === 0) bursts.push(burst)
  }
  await working
  const all = createLatencyHistogram()
  for (const burst of bursts) all.add(burst.histogram)
  return { ...summaryOf(bursts), ...quantilesOf(all) }
}
