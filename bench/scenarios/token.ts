import { availableParallelism } from 'node:os'
import { burstsAgainst } from '../against.ts'
import {
  alternateBursts,
  burstOf,
  type RunningTarget,
  startBaseline,
  summaryOf,
  type Target,
} from '../bursts.ts'
import { startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { measureOpenssl } from '../openssl.ts'
import { temporaryDirectory } from '../processes.ts'
import { atLeast, baselineRows, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { addAgents, type Checkout, startOurs } from '../server.ts'
import { AGENTS, atGoal, GOAL_CLIENTS } from './issue.ts'

/** Compared with `openssl speed rsa2048` on as many cores as the server used, measured between the bursts. */
export const token: Scenario = {
  name: 'token',
  title: 'POST /oauth/token (RS256)',
  async run(bench) {
    const open = (checkout: Checkout) => tokenTarget(bench, checkout)
    if (bench.against !== undefined) return burstsAgainst(bench, bench.against, token.title, open)
    const ours = await open(bench.checkout)
    const rows = [
      ...(await opensslRows(bench, token.title, ours, 0.8)),
      ...(await signingRows(bench, ours)),
      ...(await bareRows(bench, ours)),
    ]
    await ours.stop()
    return rows
  },
}

async function tokenTarget(bench: Bench, checkout: Checkout): Promise<RunningTarget> {
  const server = await startOurs({ ...bench, checkout, dataDir: temporaryDirectory(bench.directory) })
  const agents = await addAgents(server, AGENTS)
  return {
    pid: server.pid,
    port: server.port,
    asks: agents.map((agent) => ({
      method: 'POST',
      path: '/oauth/token',
      form: {
        grant_type: 'client_credentials',
        client_id: agent.clientId,
        client_secret: agent.clientSecret,
      },
    })),
    status: 200,
    stop: server.stop,
  }
}

/** Per core while all cores are busy, as in a burst: cores often share execution units. */
async function opensslPerCore(bench: Bench): Promise<number | undefined> {
  const cores = availableParallelism()
  const speed = await measureOpenssl('rsa2048', cores, bench.pace.burstMs >= 2_000 ? 2 : 1)
  return speed === undefined ? undefined : speed.perSecond / cores
}

async function opensslRows(bench: Bench, title: string, target: Target, goal?: number): Promise<Row[]> {
  const { pace, say } = bench
  const loader = startLoader()
  const rows: Row[] = []
  await burstOf(loader, target, 32, pace)
  for (const clients of pace.concurrencies) {
    const bursts = []
    const pairs = []
    for (let n = 0; n < pace.pairs; n += 1) {
      const perCore = await opensslPerCore(bench)
      if (perCore === undefined) {
        say('token: no `openssl` to compare with')
        return []
      }
      const burst = await burstOf(loader, target, clients, pace)
      bursts.push(burst)
      pairs.push({ perCore, ratio: burst.perSecond / (perCore * (burst.cores ?? 1)) })
    }
    const ratio = median(pairs.map((one) => one.ratio))
    const perCore = median(pairs.map((one) => one.perCore)).toFixed(0)
    const figures = summaryOf(bursts)
    say(
      `${title}, ${clients} clients: ${figures.perSecond.toFixed(0)}/s on ${figures.cores?.toFixed(2)} cores, openssl ${perCore}/s per core, ratio ${ratio.toFixed(3)}`,
    )
    rows.push({
      scenario: title,
      clients,
      figures,
      comparedWith: `openssl rsa2048 ${perCore}/s per core × cores`,
      ratio,
      goal: goal !== undefined && clients === GOAL_CLIENTS ? atLeast(ratio, goal) : undefined,
    })
  }
  return rows
}

/** How near to `openssl` a bare server comes that makes the signature of a token: no token request can do better. */
async function signingRows(bench: Bench, ours: Target): Promise<Row[]> {
  const signing = await startBaseline(ours, 'RS256')
  const title = 'Bare node:http that makes one RS256 signature'
  const rows = await opensslRows({ ...bench, pace: atGoal(bench.pace) }, title, signing)
  await signing.stop()
  return rows
}

async function bareRows(bench: Bench, ours: Target): Promise<Row[]> {
  const bare = await startBaseline(ours)
  const comparisons = await alternateBursts(token.title, ours, bare, atGoal(bench.pace), bench.say)
  await bare.stop()
  return baselineRows(token.title, comparisons)
}
