import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { alternatePairs, figureOf } from '../against.ts'
import { startLoader } from '../loader.ts'
import { againstRow, atLeast, atMost, type Row } from '../report.ts'
import type { Ask } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { dueCredential, fill, type Where } from '../seed.ts'
import { BACKEND, type Checkout, SCOPES, startOurs } from '../server.ts'
import { type Issuing, issueUntil, merged } from '../slices.ts'
import { type LargeStore, largeStore } from '../stores.ts'

const CLIENTS = 16
const GOAL_PER_SECOND = 20_000
const GOAL_TAIL = 2

/** Two batches of credentials expire: one on an idle server, one while the server issues. */
export const sweep: Scenario = {
  name: 'sweep',
  title: 'Sweep',
  async run(bench) {
    const rows: Row[] = []
    const { against, checkout } = bench
    for (const title of ['SQLite', 'PostgreSQL'] as const) {
      if (against === undefined) rows.push(...rowsOf(title, await sweepIn(bench, checkout, title)))
      else rows.push(...(await rowsAgainst(bench, against, title)))
    }
    return rows
  },
}

/** What one run of the scenario measured. */
interface SweepResult {
  /** Credentials in each batch. */
  readonly due: number
  readonly alone: Swept
  readonly beside: Swept
  readonly quiet: Issuing
  readonly during: Issuing
}

async function rowsAgainst(bench: Bench, against: Checkout, title: LargeStore['title']): Promise<Row[]> {
  const pairs = await alternatePairs(Math.min(2, bench.pace.pairs), {
    ours: () => sweepIn(bench, bench.checkout, title),
    reference: () => sweepIn(bench, against, title),
  })
  const results = pairs.flatMap(({ ours, reference }) => [ours, reference])
  const unfinished = results.some((one) => Math.min(one.alone.rows, one.beside.rows) < one.due)
  if (unfinished) throw new Error('a sweep did not finish in time')
  const row = (scenario: string, figure: (one: SweepResult) => number, unit: '/s' | 'ms') =>
    againstRow(`${scenario}, ${title}`, against.directory, figureOf(pairs, figure), unit)
  return [
    row('Sweep alone', (one) => speedOf(one.alone), '/s'),
    row('Sweep while issuing', (one) => speedOf(one.beside), '/s'),
    row('Issuing during the sweep: p99', (one) => one.during.p99, 'ms'),
  ]
}

async function sweepIn(bench: Bench, checkout: Checkout, title: LargeStore['title']): Promise<SweepResult> {
  const due = bench.quick ? 2_000 : 100_000
  const [fillMs, aloneMs, quietMs, duringMs] = bench.quick
    ? [4_000, 2_000, 1_000, 2_000]
    : [20_000, 15_000, 8_000, 20_000]
  const amounts = { agents: 1_000, entries: 10 * due, credentials: due }
  const store = await largeStore({ ...bench, checkout }, title, amounts)
  const now = Date.now()
  const aloneAt = now + fillMs
  const besideAt = aloneAt + aloneMs + quietMs
  await fill(store, { credentials: dueRows(store, due, now, [aloneAt, besideAt]) })
  if (Date.now() > aloneAt - 1_000) throw new Error('filling the store took too long')
  const server = await startOurs({ ...bench, ...store, checkout })
  const loader = startLoader()
  await until(aloneAt + aloneMs)
  const json = { backend: `${BACKEND}-1`, ttl: '1h', scopes: SCOPES }
  const asks = store.tokens.map(
    (bearer): Ask => ({ method: 'POST', path: '/api/v1/credentials', bearer, json }),
  )
  const load = { loader, server, asks, clients: CLIENTS, quick: bench.quick }
  const quiet = await issueUntil(besideAt, load)
  const during = await issueUntil(besideAt + duringMs, load)
  await server.stop()
  const alone = await swept(store, aloneAt, besideAt)
  const beside = await swept(store, besideAt, Number.MAX_SAFE_INTEGER)
  bench.say(
    `sweep, ${title}: ${alone.rows} in ${alone.ms} ms alone, ${beside.rows} in ${beside.ms} ms while issuing`,
  )
  const within = during.filter((one) => one.from >= beside.from && one.to <= beside.to)
  return {
    due,
    alone,
    beside,
    quiet: merged(quiet),
    during: merged(within.length > 0 ? within : during.slice(0, 1)),
  }
}

function* dueRows(store: LargeStore, count: number, now: number, times: readonly number[]) {
  const content = { ...store.content, backends: store.content.backends.slice(0, 1) }
  for (let n = 0; n < count * times.length; n += 1) {
    yield dueCredential(content, n, now, times[Math.floor(n / count)]!)
  }
}

interface Swept {
  readonly rows: number
  readonly ms: number
  readonly from: number
  readonly to: number
}

/** Read from the audit entries of the sweep, after the server has closed the store. */
async function swept(where: Where, from: number, before: number): Promise<Swept> {
  const text =
    "SELECT count(*) AS rows, min(at) AS first, max(at) AS last FROM audit WHERE action = 'credential.expired'"
  const within = ` AND at >= ${from} AND at < ${before}`
  let found: Record<string, unknown> | undefined
  if (where.databaseUrl === undefined) {
    const db = new DatabaseSync(join(where.dataDir, 'mayfly.db'))
    found = db.prepare(text + within).get()
    db.close()
  } else {
    const client = new pg.Client(where.databaseUrl)
    await client.connect()
    found = (await client.query(text + within)).rows[0]
    await client.end()
  }
  const [first, last] = [Number(found?.['first']), Number(found?.['last'])]
  return { rows: Number(found?.['rows']), ms: Math.max(1, last - first), from: first, to: last }
}

const speedOf = ({ rows, ms }: Swept) => (rows / ms) * 1_000

function rowsOf(title: string, { due, alone, beside, quiet, during }: SweepResult): Row[] {
  const rate = (label: string, one: Swept, goal: boolean): Row => {
    const ratio = speedOf(one) / GOAL_PER_SECOND
    const missing = one.rows < due ? `, ${due - one.rows} NOT SWEPT` : ''
    return {
      scenario: `Sweep of ${due}, ${title}, ${label}${missing}`,
      clients: undefined,
      figures: { perSecond: speedOf(one) },
      comparedWith: `${GOAL_PER_SECOND}/s`,
      ratio,
      goal: goal ? atLeast(ratio, 1) : undefined,
      detail: one,
    }
  }
  const tail = during.p99 / quiet.p99
  return [
    rate('alone', alone, false),
    rate('while issuing', beside, true),
    {
      scenario: `Issuing during the sweep: p99, ${title}`,
      clients: CLIENTS,
      figures: during,
      comparedWith: `idle sweeper: ${quiet.perSecond.toFixed(0)}/s, p50 ${quiet.p50.toFixed(2)}, p99 ${quiet.p99.toFixed(2)} ms`,
      ratio: tail,
      goal: atMost(tail, GOAL_TAIL),
      detail: { quiet, during },
    },
  ]
}

function until(time: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, time - Date.now())))
}
