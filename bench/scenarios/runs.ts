import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Beaten, BeatMessage, BeatPlan } from '../beater.ts'
import { alternateBursts } from '../bursts.ts'
import { onExit } from '../processes.ts'
import { againstRows, atLeast, type Row } from '../report.ts'
import { encode, fetchJson } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { atGoal, type IssueTarget, issueTarget } from './issue.ts'

const RUNS = 10_000
const HEARTBEAT_MS = 10_000
const AT_ONCE = 32
const SLICE = 500
/** The least share of its throughput that issuing keeps. */
const LEAST = 0.95

const withGoal = (row: Row): Row => ({ ...row, goal: atLeast(row.ratio, LEAST) })

/** What runs cost: issuing beside very many that beat, and issuing for a run. */
export const runs: Scenario = {
  name: 'runs',
  title: `Issue (kind jwt), SQLite, beside ${RUNS} runs that beat every 10 s`,
  run: async (bench) => [...(await besideBeats(bench)), ...(await forRuns(bench))],
}

async function besideBeats(bench: Bench): Promise<Row[]> {
  const [ours, plain] = [await issueTarget(bench, bench.checkout), await issueTarget(bench, bench.checkout)]
  const count = bench.quick ? RUNS / 20 : RUNS
  const beater = startBeating({ port: ours.port, everyMs: HEARTBEAT_MS })
  const begun: Begun[] = []
  // Those of the first slice beat while the others begin.
  for (let left = count; left > 0; left -= SLICE) {
    const some = await startRuns(ours, Math.min(left, SLICE))
    beater.add(some.map((run) => beatOf(run, ours.port)))
    begun.push(...some)
  }
  const comparisons = await alternateBursts(runs.title, ours, plain, atGoal(bench.pace), bench.say)
  const { sent, good, bad } = await beater.stop()
  bench.say(`${good} of ${sent} heartbeats were answered`)
  if (bad !== undefined) throw new Error(`a heartbeat failed: ${bad}`)
  await requireRunning(ours, begun)
  await Promise.all([ours.stop(), plain.stop()])
  return againstRows(runs.title, 'no runs', comparisons).map(withGoal)
}

/** As many again for the one run of each agent. */
async function forRuns(bench: Bench): Promise<Row[]> {
  const title = 'Issue for a run (kind jwt), SQLite'
  const [target, plain] = [await issueTarget(bench, bench.checkout), await issueTarget(bench, bench.checkout)]
  const bearers = target.asks.map(({ bearer }) => bearer ?? '')
  const ids = await Promise.all(bearers.map((bearer) => startRun(target, bearer)))
  const asks = target.asks.map((ask, n) => ({ ...ask, json: { ...(ask.json as object), run: ids[n] } }))
  const comparisons = await alternateBursts(title, { ...target, asks }, plain, atGoal(bench.pace), bench.say)
  await Promise.all([target.stop(), plain.stop()])
  return againstRows(title, 'no runs', comparisons).map(withGoal)
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
        begun.push({ id: await startRun(target, bearer), bearer })
      }
    }),
  )
  return begun
}

async function startRun({ port }: IssueTarget, bearer: string): Promise<string> {
  const ask = { method: 'POST', path: '/v1/runs', bearer, json: { heartbeat: `${HEARTBEAT_MS}ms` } } as const
  return (await fetchJson<{ id: string }>(ask, port)).id
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
