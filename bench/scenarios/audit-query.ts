import { type Loader, startLoader } from '../loader.ts'
import { atMost, type Row } from '../report.ts'
import { encode } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { COMMON_ACTION, RARE_ACTION } from '../seed.ts'
import { type OurServer, startOurs } from '../server.ts'
import { credentialIdAt, halfWay, type LargeStore, largeStore } from '../stores.ts'

const GOAL_MS = 3
const WORST_SHOWN = 3

/** By HTTP, one client, a hundred entries a page, by an agent that may read all. */
export const auditQuery: Scenario = {
  name: 'audit-query',
  title: 'Audit query',
  async run(bench) {
    const rows: Row[] = []
    for (const title of ['SQLite', 'PostgreSQL'] as const) {
      const million = bench.quick ? 20_000 : 1_000_000
      const first = await measure(bench, title, million)
      rows.push(...rowsOf(first, GOAL_MS))
      if (bench.large) rows.push(...rowsOf(await measure(bench, title, 10 * million), 2 * GOAL_MS))
    }
    return rows
  },
}

interface Measured {
  readonly title: string
  readonly entries: number
  /** By the filters that are set: p50, p95, p99 in ms. */
  readonly figures: readonly { label: string; p50: number; p95: number; p99: number; perSecond: number }[]
}

async function measure(bench: Bench, title: LargeStore['title'], entries: number): Promise<Measured> {
  const amounts = { agents: bench.quick ? 100 : 1_000, entries, credentials: bench.quick ? 1_000 : 100_000 }
  const store = await largeStore(bench, title, amounts)
  const server = await startOurs({ ...bench, ...store })
  const loader = startLoader()
  const figures = []
  for (const combination of combinations(store, entries)) {
    const { p50, p95, p99, perSecond } = await askAll(bench, loader, server, store, combination.queries)
    figures.push({ label: combination.label, p50, p95, p99, perSecond })
  }
  await server.stop()
  const worst = Math.max(...figures.map((one) => one.p50))
  bench.say(
    `audit query, ${title}, ${entries} entries: ${figures.length} combinations, worst p50 ${worst} ms`,
  )
  return { title, entries, figures }
}

async function askAll(
  bench: Bench,
  loader: Loader,
  server: OurServer,
  store: LargeStore,
  queries: readonly string[],
) {
  const { port, pid } = server
  const requests = queries.map((query) =>
    encode({ method: 'GET', path: `/api/v1/audit?${query}`, bearer: store.tokens[0]! }, port),
  )
  const [warmMs, measureMs] = bench.quick ? [50, 100] : [300, 700]
  return loader.run({ port, requests, connections: 1, warmMs, measureMs, status: 200 }, pid)
}

interface Combination {
  readonly label: string
  readonly queries: readonly string[]
}

/** Values of each filter: of common ones and rare ones, so that no one of them is all that is seen. */
function combinations(store: LargeStore, entries: number): Combination[] {
  const { agents, backends } = store.content
  const spread = <T>(all: readonly T[]) => Array.from({ length: 16 }, (_, n) => all[(n * 61) % all.length]!)
  const half = halfWay(entries, store.now)
  const choices: Record<string, string[]> = {
    agent: spread(agents).map((one) => one.id),
    backend: spread(backends).map((one) => one.name),
    action: [COMMON_ACTION],
    'action(rare)': [RARE_ACTION],
    since: [half],
    until: [half],
    credential: Array.from({ length: 16 }, (_, n) => credentialIdAt(n * 61, entries, store.now)),
  }
  const names = Object.keys(choices)
  const subsets = Array.from({ length: 2 ** names.length }, (_, bits) =>
    names.filter((_name, index) => (bits & (1 << index)) !== 0),
  )
  return subsets
    .filter((some) => some.filter((name) => name.startsWith('action')).length < 2)
    .filter((some) => !some.includes('credential') || some.length <= 2)
    .map((some) => ({
      label: some.length === 0 ? 'none' : some.join(' + '),
      queries: Array.from({ length: 16 }, (_, n) =>
        new URLSearchParams(
          some.map((name): [string, string] => [
            name.replace('(rare)', ''),
            choices[name]![n % choices[name]!.length]!,
          ]),
        ).toString(),
      ),
    }))
}

/** The worst few and one for all of them. */
function rowsOf({ title, entries, figures }: Measured, goalMs: number): Row[] {
  const ranked = [...figures].sort((one, other) => other.p50 - one.p50)
  return ranked.slice(0, WORST_SHOWN).map((one, index) => ({
    scenario: `Audit, ${title}, ${entries} entries, ${index === 0 ? 'worst' : `worst but ${index}`} of ${figures.length}: ${one.label}`,
    clients: 1,
    figures: one,
    floor: `${goalMs} ms at p50`,
    ratio: one.p50 / goalMs,
    goal: atMost(one.p50 / goalMs, 1),
    detail: index === 0 ? { figures } : {},
  }))
}
