import { burstsAgainst } from '../against.ts'
import { alternateBursts, type Pace, type RunningTarget, startBaseline, type Target } from '../bursts.ts'
import { type DiskSpeed, measureDisk } from '../disk.ts'
import { median } from '../median.ts'
import { freshDatabase } from '../postgres.ts'
import { temporaryDirectory } from '../processes.ts'
import { atMost, baselineRows, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { addAgents, BACKEND, type Checkout, SCOPES, type ServerOptions, startOurs } from '../server.ts'

/** Enough that no agent comes near its limit of active credentials. */
export const AGENTS = 64
export const GOAL_CLIENTS = 64

export const issueSqlite: Scenario = {
  name: 'issue-sqlite',
  title: 'Issue (kind jwt), SQLite',
  run: (bench) => issue(bench, issueSqlite.title, async () => undefined, 0.45),
}

export const issuePostgres: Scenario = {
  name: 'issue-postgres',
  title: 'Issue (kind jwt), PostgreSQL',
  run: (bench) => issue(bench, issuePostgres.title, () => freshDatabase(bench.say), 0.35),
}

export interface IssueTarget extends RunningTarget {
  readonly dataDir: string
}

/** A new server whose agents issue credentials, on a new store unless one is given. */
export async function issueTarget(
  bench: Bench,
  checkout: Checkout,
  options: Partial<Pick<ServerOptions, 'dataDir' | 'databaseUrl' | 'environment'>> = {},
): Promise<IssueTarget> {
  const { dataDir = temporaryDirectory(bench.directory) } = options
  const server = await startOurs({ ...bench, ...options, checkout, dataDir })
  const agents = await addAgents(server, AGENTS)
  return {
    dataDir,
    pid: server.pid,
    port: server.port,
    asks: agents.map(({ token }) => ({
      method: 'POST',
      path: '/api/v1/credentials',
      bearer: token,
      json: { backend: BACKEND, ttl: '1h', scopes: SCOPES },
    })),
    status: 201,
    stop: server.stop,
  }
}

/** The same pace, only at the number of clients that has a goal; a run without it takes its largest number. */
export function atGoal(pace: Pace): Pace {
  const { concurrencies } = pace
  const clients = concurrencies.includes(GOAL_CLIENTS) ? GOAL_CLIENTS : Math.max(...concurrencies)
  return { ...pace, concurrencies: [clients] }
}

/** How much of its throughput the baseline keeps when it makes the signature of an issue: no issue can do better. */
async function signingRows(bench: Bench, ours: Target): Promise<Row[]> {
  const title = 'Bare node:http that makes one ES256 signature'
  const signing = await startBaseline(ours, 'ES256')
  const bare = await startBaseline(ours)
  const comparisons = await alternateBursts(title, signing, bare, atGoal(bench.pace), bench.say)
  await signing.stop()
  await bare.stop()
  return baselineRows(title, comparisons)
}

async function issue(
  bench: Bench,
  title: string,
  newDatabase: () => Promise<string | undefined>,
  goal: number,
): Promise<Row[]> {
  const open = async (checkout: Checkout) =>
    issueTarget(bench, checkout, { databaseUrl: await newDatabase() })
  if (bench.against !== undefined) return burstsAgainst(bench, bench.against, title, open)
  const ours = await open(bench.checkout)
  const bare = await startBaseline(ours)
  const disk: DiskSpeed[] = []
  const comparisons = await alternateBursts(title, ours, bare, bench.pace, bench.say, () => {
    disk.push(measureDisk(ours.dataDir, bench.quick ? 50 : 200))
  })
  await bare.stop()
  const rows = baselineRows(title, comparisons, { clients: GOAL_CLIENTS, atLeast: goal })
  rows.push(...(await signingRows(bench, ours)))
  await ours.stop()
  const atGoalClients = comparisons.find((one) => one.clients === GOAL_CLIENTS)
  if (atGoalClients === undefined) return rows
  const { perSecond, p50, p99, tail } = atGoalClients.ours
  const syncs = median(disk.map((one) => one.syncsPerSecond))
  return [
    ...rows,
    {
      scenario: `${title}: issues per disk sync`,
      clients: GOAL_CLIENTS,
      figures: { perSecond },
      comparedWith: `fdatasync of 4 KiB ${syncs.toFixed(0)}/s`,
      ratio: perSecond / syncs,
      goal: undefined,
      detail: { disk },
    },
    {
      scenario: `${title}: p99`,
      clients: GOAL_CLIENTS,
      figures: { p50, p99 },
      comparedWith: 'its p50',
      ratio: tail,
      goal: atMost(tail, 4),
    },
  ]
}
