import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Beaten, BeatMessage, BeatPlan } from '../beater.ts'
import { burstOf, comparisonOf, described, type Pair } from '../bursts.ts'
import { type Burst, startLoader } from '../loader.ts'
import { freshDatabase } from '../postgres.ts'
import { onExit } from '../processes.ts'
import { againstRows, atLeast, type Row } from '../report.ts'
import { encode, fetchJson } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { atGoal, type IssueTarget, issueTarget } from './issue.ts'
import { startRun } from './issue-for-run.ts'

const RUNS = 10_000
const HEARTBEAT_MS = 10_000
const AT_ONCE = 32
/** Runs that begin before they beat. */
const STARTED = 500
/** Beats are written within this time: then a slice has its own ones. */
const LEAD_MS = HEARTBEAT_MS / 2
/** Of a slice with beats: an interval, so that each run beats and is written. */
const WITH_MS = HEARTBEAT_MS
/** Of one without: no run may die of it. */
const WITHOUT_MS = 4_000
/** The least share of its throughput that issuing keeps. */
const LEAST = 0.95

/** What beats cost: one server issues, in slices with the beats of very many runs and without. */
export const runs: Scenario = {
  name: 'runs',
  title: `Issue (kind jwt) beside ${RUNS} runs that beat every 10 s`,
  run: async (bench) => [
    ...(await besideBeats(bench, 'SQLite', undefined)),
    ...(await besideBeats(bench, 'PostgreSQL', await freshDatabase(bench.say))),
  ],
}

async function besideBeats(bench: Bench, store: string, databaseUrl: string | undefined): Promise<Row[]> {
  const title = `${runs.title}, ${store}`
  const target = await issueTarget(bench, bench.checkout, { databaseUrl })
  const beater = startBeating({ port: target.port, everyMs: HEARTBEAT_MS })
  const begun: Begun[] = []
  for (let left = bench.quick ? RUNS / 20 : RUNS; left > 0; left -= STARTED) {
    const some = await startRuns(target, Math.min(left, STARTED))
    beater.add(some.map((run) => beatOf(run, target.port)))
    begun.push(...some)
  }
  const pace = atGoal(bench.pace)
  const clients = pace.concurrencies[0] ?? 1
  const loader = startLoader()
  const burst = async (ms: number) => {
    if (!bench.quick) await sleep(LEAD_MS)
    return burstOf(loader, target, clients, { ...pace, burstMs: bench.quick ? pace.burstMs : ms })
  }
  await burst(WITHOUT_MS)
  const pairs: Pair[] = []
  let before: Burst | undefined
  for (let n = 0; n < pace.pairs; n += 1) {
    beater.resume()
    const ours = await burst(WITH_MS)
    // Each is compared with the ones beside it, so that the growth of the store favours neither.
    if (before !== undefined) pairs.push({ ours, reference: before })
    beater.pause()
    before = await burst(WITHOUT_MS)
    pairs.push({ ours, reference: before })
  }
  beater.resume()
  const { sent, good, bad } = await beater.stop()
  bench.say(`${good} of ${sent} heartbeats were answered`)
  if (bad !== undefined) throw new Error(`a heartbeat failed: ${bad}`)
  await requireRunning(target, begun)
  await target.stop()
  const compared = comparisonOf(clients, pairs)
  bench.say(`${title}, ${described(compared)}`)
  return againstRows(title, 'no beats', [compared]).map((row) => ({
    ...row,
    goal: atLeast(row.ratio, LEAST),
  }))
}

interface Begun {
  readonly id: string
  readonly bearer: string
}

/** Runs of the agents of the target, in turn. */
async function startRuns(target: IssueTarget, count: number): Promise<Begun[]> {
  const bearers = target.asks.map(({ bearer }) => bearer ?? '')
  const begun: Begun[] = []
  const numbers = Array.from({ length: count }, (_, n) => n).values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const n of numbers) {
        const bearer = bearers[n % bearers.length] ?? ''
        begun.push({ id: await startRun(target, bearer, `${HEARTBEAT_MS}ms`), bearer })
      }
    }),
  )
  return begun
}

const beatOf = ({ id, bearer }: Begun, port: number) =>
  encode({ method: 'POST', path: `/v1/runs/${id}/heartbeat`, bearer }, port)

function startBeating(plan: BeatPlan) {
  const worker = new Worker(new URL('../beater.ts', import.meta.url))
  onExit(async () => {
    await worker.terminate()
  })
  worker.postMessage(plan)
  const tell = (message: BeatMessage) => worker.postMessage(message)
  return {
    add: (requests: readonly string[]) => tell({ requests }),
    pause: () => tell('pause'),
    resume: () => tell('resume'),
    stop: async (): Promise<Beaten> => {
      tell('stop')
      const [beaten] = (await once(worker, 'message')) as [Beaten]
      await worker.terminate()
      return beaten
    },
  }
}

/** A bench in which the runs had died would measure nothing. */
async function requireRunning({ port }: IssueTarget, begun: readonly Begun[]): Promise<void> {
  for (const { id, bearer } of begun.filter((_, n) => n % 500 === 0)) {
    const { state } = await fetchJson<{ state: string }>(
      { method: 'GET', path: `/v1/runs/${id}`, bearer },
      port,
    )
    if (state !== 'running') throw new Error('a run that beats has ended')
  }
}
