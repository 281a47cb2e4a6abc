import { alternate, burstOf, type RunningTarget } from '../bursts.ts'
import { type Burst, startLoader } from '../loader.ts'
import { againstRow, atMost, type MeasuredPair, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { COMMON_ACTION, RARE_ACTION } from '../seed.ts'
import { type Checkout, startOurs } from '../server.ts'
import { credentialIdAt, halfWay, type LargeStore, largeStore } from '../stores.ts'

const GOAL_MS = 3
const SHOWN = 3

/** Over HTTP, one client, a hundred entries per page, by an agent that may read everything. */
export const auditQuery: Scenario = {
  name: 'audit-query',
  title: 'Audit query',
  async run(bench) {
    const rows: Row[] = []
    for (const title of ['SQLite', 'PostgreSQL'] as const) {
      const entries = bench.quick ? 20_000 : 1_000_000
      rows.push(...(await auditRows(bench, title, entries)))
    }
    return rows
  },
}

async function auditRows(bench: Bench, title: LargeStore['title'], entries: number): Promise<Row[]> {
  const { against } = bench
  const reference = against === undefined ? undefined : await openStore(bench, against, title, entries)
  const ours = await openStore(bench, bench.checkout, title, entries)
  const loader = startLoader()
  const pace = bench.quick ? { warmMs: 50, burstMs: 100 } : { warmMs: 100, burstMs: 300 }
  const labels = labelsOf(ours.store, entries).filter((label) => !bench.quick || !label.includes('+'))
  const figures: Figure[] = []
  const pairs: MeasuredPair[] = []
  for (const [n, label] of labels.entries()) {
    const burst = (one: Opened) => burstOf(loader, withQueries(one, label, entries), 1, pace)
    if (reference === undefined) {
      figures.push(figureOf(label, await burst(ours)))
      continue
    }
    const pair = await alternate(
      n,
      () => burst(ours),
      () => burst(reference),
    )
    figures.push(figureOf(label, pair.ours))
    pairs.push({ ours: pair.ours.p50, reference: pair.reference.p50 })
  }
  await ours.target.stop()
  await reference?.target.stop()
  const worst = Math.max(...figures.map((one) => one.p50))
  const scenario = `Audit, ${title}, ${entries} entries`
  bench.say(`${scenario}: ${figures.length} combinations, worst p50 ${worst} ms`)
  return against === undefined
    ? slowestRows(scenario, figures)
    : [againstRow(`${scenario}, ${labels.length} combinations of filters`, against.directory, pairs, 'ms')]
}

interface Opened {
  readonly store: LargeStore
  readonly target: RunningTarget
}

async function openStore(
  bench: Bench,
  checkout: Checkout,
  title: LargeStore['title'],
  entries: number,
): Promise<Opened> {
  const amounts = { agents: bench.quick ? 100 : 1_000, entries, credentials: bench.quick ? 1_000 : 100_000 }
  const store = await largeStore({ ...bench, checkout }, title, amounts)
  const server = await startOurs({ ...bench, ...store, checkout })
  return { store, target: { ...server, asks: [], status: 200 } }
}

interface Figure {
  readonly label: string
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly perSecond: number
}

function figureOf(label: string, { p50, p95, p99, perSecond }: Burst): Figure {
  return { label, p50, p95, p99, perSecond }
}

/** Filters by name: sixteen values each, of common and of rare ones. */
function choicesOf({ content, now }: LargeStore, entries: number): Record<string, string[]> {
  const spread = <T>(all: readonly T[]) => Array.from({ length: 16 }, (_, n) => all[(n * 61) % all.length]!)
  const agents = content.agents.map((one) => one.id)
  const half = halfWay(entries, now)
  return {
    agent: spread(agents),
    'actor(agent)': spread(agents),
    'actor(admin)': agents.slice(1, 6),
    'actor(local)': ['local'],
    'actor(system)': ['system'],
    backend: spread(content.backends).map((one) => one.name),
    action: [COMMON_ACTION],
    'action(rare)': [RARE_ACTION],
    since: [half],
    until: [half],
    credential: Array.from({ length: 16 }, (_, n) => credentialIdAt(n * 61, entries, now)),
  }
}

const parameterOf = (filter: string) => filter.replace(/\(.*\)/, '')

/** Every combination of filters, each as its names joined by `+`; `credential` only alone or with one other. */
function labelsOf(store: LargeStore, entries: number): string[] {
  const names = Object.keys(choicesOf(store, entries))
  const subsets = Array.from({ length: 2 ** names.length }, (_, bits) =>
    names.filter((_name, index) => (bits & (1 << index)) !== 0),
  )
  return subsets
    .filter((filters) => new Set(filters.map(parameterOf)).size === filters.length)
    .filter((filters) => !filters.includes('credential') || filters.length <= 2)
    .map((filters) => filters.join('+'))
}

function withQueries({ store, target }: Opened, label: string, entries: number): RunningTarget {
  const choices = choicesOf(store, entries)
  const filters = label === '' ? [] : label.split('+')
  const asks = Array.from({ length: 16 }, (_, n) => {
    const pairs = filters.map((filter): [string, string] => {
      const values = choices[filter]!
      return [parameterOf(filter), values[n % values.length]!]
    })
    return {
      method: 'GET',
      path: `/api/v1/audit?${new URLSearchParams(pairs)}`,
      bearer: store.tokens[0]!,
    } as const
  })
  return { ...target, asks }
}

/** The slowest combinations; the first row has the figures of all. */
function slowestRows(scenario: string, figures: readonly Figure[]): Row[] {
  const ranked = [...figures].sort((one, other) => other.p50 - one.p50)
  return ranked.slice(0, SHOWN).map((one, index) => ({
    scenario: `${scenario}, slowest filters (${index + 1} of ${figures.length}): ${one.label || 'none'}`,
    clients: 1,
    figures: one,
    comparedWith: `${GOAL_MS} ms at p50`,
    ratio: one.p50 / GOAL_MS,
    goal: atMost(one.p50 / GOAL_MS, 1),
    detail: index === 0 ? { figures } : {},
  }))
}
