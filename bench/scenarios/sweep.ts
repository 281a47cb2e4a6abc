import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { createHistogram } from '../histogram.ts'
import { type Burst, type Loader, startLoader } from '../loader.ts'
import { atLeast, atMost, type Row } from '../report.ts'
import { encode } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { dueCredential, fill, type Where } from '../seed.ts'
import { BACKEND, type OurServer, SCOPES, startOurs } from '../server.ts'
import { type LargeStore, largeStore } from '../stores.ts'

const CLIENTS = 16
const GOAL_PER_SECOND = 20_000
const GOAL_TAIL = 2

/** As many fall due at once, twice: with nothing else going on, and while credentials are being issued. */
export const sweep: Scenario = {
  name: 'sweep',
  title: 'Sweep',
  async run(bench) {
    const rows: Row[] = []
    for (const title of ['SQLite', 'PostgreSQL'] as const) rows.push(...(await sweepIn(bench, title)))
    return rows
  },
}

async function sweepIn(bench: Bench, title: LargeStore['title']): Promise<Row[]> {
  const due = bench.quick ? 2_000 : 100_000
  const [fillMs, aloneMs, quietMs, duringMs] = bench.quick
    ? [4_000, 2_000, 1_000, 2_000]
    : [20_000, 15_000, 8_000, 20_000]
  const store = await largeStore(bench, title, { agents: 1_000, entries: 10 * due, credentials: due })
  const now = Date.now()
  const alone = now + fillMs
  const beside = alone + aloneMs + quietMs
  await fill(store, { credentials: dueRows(store, due, now, [alone, beside]) })
  if (Date.now() > alone - 1_000) throw new Error('the store took too long to fill')
  const server = await startOurs({ ...bench, ...store })
  const loader = startLoader()
  await until(alone + aloneMs)
  const quiet = await bursts(bench, loader, server, store, beside)
  const during = await bursts(bench, loader, server, store, beside + duringMs)
  await server.stop()
  const first = await swept(store, alone, beside)
  const second = await swept(store, beside, Number.MAX_SAFE_INTEGER)
  bench.say(
    `sweep, ${title}: ${first.rows} in ${first.ms} ms alone, ${second.rows} in ${second.ms} ms beside issuing`,
  )
  const whole = during.filter((one) => one.from >= second.from && one.to <= second.to)
  return rowsOf(
    title,
    due,
    [first, second],
    pooled(quiet),
    pooled(whole.length > 0 ? whole : during.slice(0, 1)),
  )
}

function* dueRows(store: LargeStore, count: number, now: number, times: readonly number[]) {
  const content = { ...store.content, backends: store.content.backends.slice(0, 1) }
  for (let n = 0; n < count * times.length; n += 1) {
    yield dueCredential(content, n, now, times[Math.floor(n / count)]!)
  }
}

interface Slice extends Burst {
  /** Epoch ms. */
  readonly from: number
  readonly to: number
}

/** Short ones, one after the other, so that those which lie within the sweep can be told afterwards. */
async function bursts(
  bench: Bench,
  loader: Loader,
  server: OurServer,
  store: LargeStore,
  end: number,
): Promise<Slice[]> {
  const { port, pid } = server
  const json = { backend: `${BACKEND}-1`, ttl: '1h', scopes: SCOPES }
  const requests = store.tokens.map((bearer) =>
    encode({ method: 'POST', path: '/api/v1/credentials', bearer, json }, port),
  )
  const [warmMs, measureMs] = bench.quick ? [20, 100] : [50, 450]
  const plan = { port, requests, connections: CLIENTS, warmMs, measureMs, status: 201 }
  const slices: Slice[] = []
  while (Date.now() < end - warmMs - measureMs) {
    const from = Date.now() + warmMs
    slices.push({ ...(await loader.run(plan, pid)), from, to: from + measureMs })
  }
  return slices
}

function pooled(slices: readonly Slice[]): { p50: number; p95: number; p99: number; perSecond: number } {
  const all = createHistogram()
  for (const slice of slices) all.add(slice.counts)
  const seconds = slices.reduce((sum, one) => sum + one.seconds, 0)
  const [p50 = Number.NaN, p95 = Number.NaN, p99 = Number.NaN] = [0.5, 0.95, 0.99].map(all.quantile)
  return { p50, p95, p99, perSecond: all.count() / seconds }
}

interface Swept {
  readonly rows: number
  readonly ms: number
  readonly from: number
  readonly to: number
}

/** By the entries that it wrote, read once the server has let go of the store. */
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

function rowsOf(
  title: string,
  due: number,
  [alone, beside]: readonly [Swept, Swept],
  quiet: ReturnType<typeof pooled>,
  during: ReturnType<typeof pooled>,
): Row[] {
  const speed = ({ rows, ms }: Swept) => (rows / ms) * 1_000
  const rate = (label: string, one: Swept, goal: boolean): Row => {
    const ratio = speed(one) / GOAL_PER_SECOND
    const missing = one.rows < due ? `, ${due - one.rows} NOT SWEPT` : ''
    return {
      scenario: `Sweep of ${due}, ${title}, ${label}${missing}`,
      clients: undefined,
      figures: { perSecond: speed(one) },
      floor: `${GOAL_PER_SECOND}/s`,
      ratio,
      goal: goal ? atLeast(ratio, 1) : undefined,
      detail: one,
    }
  }
  const tail = during.p99 / quiet.p99
  return [
    rate('alone', alone, false),
    rate('beside issuing', beside, true),
    {
      scenario: `Issuing during the sweep: p99, ${title}`,
      clients: CLIENTS,
      figures: during,
      floor: `quiet: ${quiet.perSecond.toFixed(0)}/s, p50 ${quiet.p50.toFixed(2)}, p99 ${quiet.p99.toFixed(2)} ms`,
      ratio: tail,
      goal: atMost(tail, GOAL_TAIL),
      detail: { quiet, during },
    },
  ]
}

function until(time: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, time - Date.now())))
}
