import { availableParallelism } from 'node:os'
import { median } from '../histogram.ts'
import { startLoader } from '../loader.ts'
import { measureOpenssl } from '../openssl.ts'
import { temporaryDirectory } from '../processes.ts'
import { atLeast, type Row, throughputRows } from '../report.ts'
import { type Ask, encode, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Agent, furnish, type OurServer, startOurs } from '../server.ts'
import { startFloor, summaryOf, takeTurns } from '../turns.ts'
import { AGENTS, atGoal, GOAL_CLIENTS } from './issue.ts'

/** Its floor is `openssl speed rsa2048` on as many cores as our server kept busy, measured between the bursts. */
export const token: Scenario = {
  name: 'token',
  title: 'POST /oauth/token (RS256)',
  async run(bench) {
    const dataDir = temporaryDirectory(bench.directory)
    const server = await startOurs({ ...bench, dataDir })
    const asks = (await furnish(server, AGENTS)).map(tokenAsk)
    const rows = [
      ...(await besideOpenssl(bench, token.title, server, asks, 0.8)),
      ...(await besideSigning(bench, server.port, asks)),
      ...(await besideBare(bench, server, asks)),
    ]
    await server.stop()
    return rows
  },
}

function tokenAsk(agent: Agent): Ask {
  const form = {
    grant_type: 'client_credentials',
    client_id: agent.clientId,
    client_secret: agent.clientSecret,
  }
  return { method: 'POST', path: '/oauth/token', form }
}

/** On one of the cores while all are at work, as they are in the burst: cores often share what they compute with. */
async function opensslPerCore(bench: Bench): Promise<number | undefined> {
  const cores = availableParallelism()
  const speed = await measureOpenssl('rsa2048', cores, bench.pace.burstMs >= 2_000 ? 2 : 1)
  return speed === undefined ? undefined : speed.perSecond / cores
}

async function besideOpenssl(
  bench: Bench,
  title: string,
  target: { pid: number; port: number },
  asks: readonly Ask[],
  goal?: number,
): Promise<Row[]> {
  const { pace, say } = bench
  const loader = startLoader()
  const requests = asks.map((ask) => encode(ask, target.port))
  const plan = { port: target.port, requests, warmMs: pace.warmMs, measureMs: pace.burstMs, status: 200 }
  const rows: Row[] = []
  await loader.run({ ...plan, connections: 32 }, target.pid)
  for (const connections of pace.concurrencies) {
    const bursts = []
    const perCore = []
    for (let n = 0; n < pace.pairs; n += 1) {
      const speed = await opensslPerCore(bench)
      if (speed === undefined) {
        say('token: there is no `openssl` to compare with')
        return []
      }
      const burst = await loader.run({ ...plan, connections }, target.pid)
      bursts.push(burst)
      perCore.push({ speed, ratio: burst.perSecond / (speed * (burst.cores ?? 1)) })
    }
    const ratio = median(perCore.map((one) => one.ratio))
    const speed = median(perCore.map((one) => one.speed))
    const figures = summaryOf(bursts)
    say(
      `${title}, ${connections} clients: ${figures.perSecond.toFixed(0)}/s on ${figures.cores?.toFixed(2)} cores, openssl ${speed.toFixed(0)}/s a core, ratio ${ratio.toFixed(3)}`,
    )
    rows.push({
      scenario: title,
      clients: connections,
      figures,
      floor: `openssl rsa2048 ${speed.toFixed(0)}/s a core × cores`,
      ratio,
      goal: goal !== undefined && connections === GOAL_CLIENTS ? atLeast(ratio, goal) : undefined,
    })
  }
  return rows
}

/** What is left of `openssl` when a bare server makes such a signature and does nothing more: no token can come nearer. */
async function besideSigning(bench: Bench, port: number, asks: readonly Ask[]): Promise<Row[]> {
  const reply = await record(asks[0]!, port)
  const signing = await startFloor({ ...reply, signs: 'RS256' })
  const title = 'Bare node:http that makes one RS256 signature'
  const rows = await besideOpenssl({ ...bench, pace: atGoal(bench.pace) }, title, signing, asks)
  await signing.stop()
  return rows
}

async function besideBare(bench: Bench, server: OurServer, asks: readonly Ask[]): Promise<Row[]> {
  const contest = { pid: server.pid, port: server.port, asks, status: 200 }
  const turns = await takeTurns(token.title, contest, atGoal(bench.pace), bench.say)
  return throughputRows(token.title, turns)
}
