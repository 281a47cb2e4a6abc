import { type DiskSpeed, measureDisk } from '../disk.ts'
import { median } from '../histogram.ts'
import { freshDatabase } from '../postgres.ts'
import { temporaryDirectory } from '../processes.ts'
import { atMost, type Row, throughputRows } from '../report.ts'
import { type Ask, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Agent, BACKEND, furnish, SCOPES, startOurs } from '../server.ts'
import { type Pace, startFloor, takeTurns } from '../turns.ts'

/** So many that no agent comes near the number of credentials it may hold. */
export const AGENTS = 64
export const GOAL_CLIENTS = 64

export const issueSqlite: Scenario = {
  name: 'issue-sqlite',
  title: 'Issue (kind jwt), SQLite',
  run: (bench) => issue(bench, issueSqlite.title, undefined, 0.45),
}

export const issuePostgres: Scenario = {
  name: 'issue-postgres',
  title: 'Issue (kind jwt), PostgreSQL',
  run: async (bench) => issue(bench, issuePostgres.title, await freshDatabase(bench.say), 0.35),
}

export function issueAsk(agent: Agent): Ask {
  return {
    method: 'POST',
    path: '/api/v1/credentials',
    bearer: agent.token,
    json: { backend: BACKEND, ttl: '1h', scopes: SCOPES },
  }
}

/** The same, at the number of clients alone for which there is a goal. */
export function atGoal(pace: Pace): Pace {
  return { ...pace, concurrencies: pace.concurrencies.filter((one) => one === GOAL_CLIENTS) }
}

/** What is left of the floor when it signs as an issue does and nothing more: no issue can come nearer. */
async function besideSigning(bench: Bench, port: number, agents: readonly Agent[]): Promise<Row[]> {
  const asks = agents.map(issueAsk)
  const reply = await record(asks[0]!, port)
  const signing = await startFloor({ ...reply, signs: 'ES256' })
  const title = 'Bare node:http that makes one ES256 signature'
  const contest = { ...signing, asks, status: reply.status }
  const turns = await takeTurns(title, contest, atGoal(bench.pace), bench.say)
  await signing.stop()
  return throughputRows(title, turns)
}

async function issue(
  bench: Bench,
  title: string,
  databaseUrl: string | undefined,
  goal: number,
): Promise<Row[]> {
  const dataDir = temporaryDirectory(bench.directory)
  const server = await startOurs({ ...bench, dataDir, databaseUrl })
  const agents = await furnish(server, AGENTS)
  const disk: DiskSpeed[] = []
  const turns = await takeTurns(
    title,
    { pid: server.pid, port: server.port, asks: agents.map(issueAsk), status: 201 },
    bench.pace,
    bench.say,
    () => {
      disk.push(measureDisk(dataDir, bench.quick ? 50 : 200))
    },
  )
  const rows = throughputRows(title, turns, { clients: GOAL_CLIENTS, atLeast: goal })
  rows.push(...(await besideSigning(bench, server.port, agents)))
  await server.stop()
  const measured = turns.find((one) => one.clients === GOAL_CLIENTS)
  if (measured === undefined) return rows
  const tail = measured.ours.tail
  const syncs = median(disk.map((one) => one.syncsPerSecond))
  return [
    ...rows,
    {
      scenario: `${title}: for each sync that the disk does`,
      clients: GOAL_CLIENTS,
      figures: { perSecond: measured.ours.perSecond },
      floor: `fdatasync of 4 KiB ${syncs.toFixed(0)}/s`,
      ratio: measured.ours.perSecond / syncs,
      goal: undefined,
      detail: { disk },
    },
    {
      scenario: `${title}: p99`,
      clients: GOAL_CLIENTS,
      figures: { p50: measured.ours.p50, p99: measured.ours.p99 },
      floor: 'its p50',
      ratio: tail,
      goal: atMost(tail, 4),
    },
  ]
}
