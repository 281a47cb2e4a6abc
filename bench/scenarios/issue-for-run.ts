import { alternateBursts } from '../bursts.ts'
import { freshDatabase } from '../postgres.ts'
import { againstRows, atLeast, type Row } from '../report.ts'
import { fetchJson } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { atGoal, type IssueTarget, issueTarget } from './issue.ts'

/** The least share of its throughput that issuing keeps when each credential belongs to a run. */
const LEAST = 0.9
/** Longer than the measurement: these runs need not beat. */
const HEARTBEAT = '1h'

/** What it costs that a credential belongs to a run: two servers, of which one issues for the one run of each agent. */
export const issueForRun: Scenario = {
  name: 'issue-for-run',
  title: 'Issue for a run (kind jwt)',
  run: async (bench) => [
    ...(await compare(bench, 'SQLite', async () => undefined)),
    ...(await compare(bench, 'PostgreSQL', () => freshDatabase(bench.say))),
  ],
}

async function compare(
  bench: Bench,
  store: string,
  newDatabase: () => Promise<string | undefined>,
): Promise<Row[]> {
  const title = `${issueForRun.title}, ${store}`
  const open = async () => issueTarget(bench, bench.checkout, { databaseUrl: await newDatabase() })
  const [target, plain] = [await open(), await open()]
  const asks = await Promise.all(
    target.asks.map(async (ask) => ({
      ...ask,
      json: { ...(ask.json as object), run: await startRun(target, ask.bearer ?? '', HEARTBEAT) },
    })),
  )
  const comparisons = await alternateBursts(title, { ...target, asks }, plain, atGoal(bench.pace), bench.say)
  await Promise.all([target.stop(), plain.stop()])
  return againstRows(title, 'no run', comparisons).map((row) => ({
    ...row,
    goal: atLeast(row.ratio, LEAST),
  }))
}

/** The id of a new run of the agent with this bearer. */
export async function startRun({ port }: IssueTarget, bearer: string, heartbeat: string): Promise<string> {
  const ask = { method: 'POST', path: '/v1/runs', bearer, json: { heartbeat } } as const
  return (await fetchJson<{ id: string }>(ask, port)).id
}
