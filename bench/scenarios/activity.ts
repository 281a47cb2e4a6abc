import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { alternate, alternateBursts, burstOf, type RunningTarget } from '../bursts.ts'
import { startLoader } from '../loader.ts'
import { againstRows, atMost, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { startOurs } from '../server.ts'
import { type LargeStore, largeStore } from '../stores.ts'
import { atGoal, issueTarget } from './issue.ts'

/** After all ids: nothing is left to count. */
const END = '~'
const ENTRIES = 10_000_000
/**
 * What a tenth of the entries may be cheaper. Both stores have entries in almost every count; a smaller one has fewer counts to read,
 * so that a quick run decides nothing.
 */
const GOAL = 2
/** Long enough for several of the slowest reads. */
const PACE = { warmMs: 200, burstMs: 1_000 }

/** What counting costs those who issue, and what reading the counts costs in a large store. */
export const activity: Scenario = {
  name: 'activity',
  title: 'Activity: counting while issuing, and reading, SQLite',
  run: async (bench) => [...(await counted(bench)), ...(await read(bench))],
}

async function counted(bench: Bench): Promise<Row[]> {
  const title = 'Issue while the audit is counted'
  const [ours, plain] = [await issueTarget(bench, bench.checkout), await issueTarget(bench, bench.checkout)]
  inDatabase(plain.dataDir, (db) =>
    db.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES ('activity', ?)").run(END),
  )
  const comparisons = await alternateBursts(title, ours, plain, atGoal(bench.pace), bench.say)
  await Promise.all([ours.stop(), plain.stop()])
  return againstRows(title, 'nothing is counted', comparisons)
}

function inDatabase(dataDir: string, work: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(join(dataDir, 'mayfly.db'), { timeout: 10_000 })
  work(db)
  db.close()
}

interface Opened {
  readonly store: LargeStore
  readonly target: RunningTarget
  readonly entries: number
}

/** A server whose audit has been counted. */
async function open(bench: Bench, entries: number): Promise<Opened> {
  const amounts = { agents: bench.quick ? 100 : 1_000, entries, credentials: entries / 10 }
  const store = await largeStore(bench, 'SQLite', amounts)
  // The server has counted what it wrote itself, and would not look back.
  inDatabase(store.dataDir, (db) => db.exec("DELETE FROM activity; DELETE FROM meta WHERE key = 'activity'"))
  const server = await startOurs({ ...bench, ...store })
  const began = performance.now()
  for (;;) {
    const { counted_until } = await server.admin<{ counted_until: string }>('GET', '/v1/admin/activity')
    if (Date.parse(counted_until) > store.now) break
    await wait(1_000)
  }
  const perSecond = Math.round((entries / (performance.now() - began)) * 1_000)
  bench.say(`${entries} entries: ${perSecond} counted per second`)
  return { store, target: { ...server, asks: [], status: 200 }, entries }
}

const READS = [
  ['the last day', '/v1/admin/activity'],
  ['30 days', '/v1/admin/activity?since=30d'],
  ['30 days by action', '/v1/admin/activity?since=30d&by=action'],
  ['two hours of one action', '/v1/admin/activity?since=2h&action=credential.issued'],
] as const

async function read(bench: Bench): Promise<Row[]> {
  const entries = bench.quick ? 20_000 : ENTRIES
  const large = await open(bench, entries)
  const small = await open(bench, entries / 10)
  const loader = startLoader()
  const rows: Row[] = []
  for (const [n, [label, path]] of READS.entries()) {
    const burst = ({ store, target }: Opened) =>
      burstOf(loader, { ...target, asks: [{ method: 'GET', path, bearer: store.tokens[0]! }] }, 1, PACE)
    const pair = await alternate(
      n,
      () => burst(large),
      () => burst(small),
    )
    const { p50, p95, p99, perSecond } = pair.ours
    bench.say(`${label}: p50 ${p50} ms, in the small store ${pair.reference.p50} ms`)
    rows.push({
      scenario: `Activity of ${label}, ${entries} entries`,
      clients: 1,
      figures: { p50, p95, p99, perSecond },
      comparedWith: `${small.entries} entries`,
      ratio: p50 / pair.reference.p50,
      goal: bench.quick ? undefined : atMost(p50 / pair.reference.p50, GOAL),
    })
  }
  await Promise.all([large.target.stop(), small.target.stop()])
  return rows
}
