import { availableParallelism } from 'node:os'
import { median } from '../histogram.ts'
import { startLoader } from '../loader.ts'
import { measureOpenssl } from '../openssl.ts'
import { temporaryDirectory } from '../processes.ts'
import { atLeast, type Row, throughputRows } from '../report.ts'
import { type Ask, encode } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Agent, furnish, type OurServer, startOurs } from '../server.ts'
import { summaryOf, takeTurns } from '../turns.ts'
import { AGENTS } from './issue.ts'

/** Its floor is `openssl speed rsa2048` on as many cores as our server kept busy, measured between the bursts. */
export const token: Scenario = {
  name: 'token',
  title: 'POST /oauth/token (RS256)',
  async run(bench) {
    const dataDir = temporaryDirectory(bench.directory)
    const server = await startOurs({ ...bench, dataDir })
    const agents = await furnish(server, AGENTS)
    const rows = [
      ...(await besideOpenssl(bench, server, agents)),
      ...(await besideBare(bench, server, agents)),
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

async function besideOpenssl(bench: Bench, server: OurServer, agents: readonly Agent[]): Promise<Row[]> {
  const { pace, say } = bench
  const loader = startLoader()
  const requests = agents.map((agent) => encode(tokenAsk(agent), server.port))
  const plan = { port: server.port, requests, warmMs: pace.warmMs, measureMs: pace.burstMs, status: 200 }
  const rows: Row[] = []
  await loader.run({ ...plan, connections: 32 }, server.pid)
  for (const connections of pace.concurrencies) {
    const bursts = []
    const perCore = []
    for (let n = 0; n < pace.pairs; n += 1) {
      const speed = await measureOpenssl('rsa2048', 1, pace.burstMs >= 2_000 ? 2 : 1)
      if (speed === undefined) {
        say('token: there is no `openssl` to compare with')
        return []
      }
      const burst = await loader.run({ ...plan, connections }, server.pid)
      bursts.push(burst)
      perCore.push({
        speed: speed.perSecond,
        ratio: burst.perSecond / (speed.perSecond * (burst.cores ?? 1)),
      })
    }
    const ratio = median(perCore.map((one) => one.ratio))
    const speed = median(perCore.map((one) => one.speed))
    const figures = summaryOf(bursts)
    say(
      `token, ${connections} clients: ${figures.perSecond.toFixed(0)}/s on ${figures.cores?.toFixed(2)} cores, openssl ${speed.toFixed(0)}/s a core, ratio ${ratio.toFixed(3)}`,
    )
    rows.push({
      scenario: token.title,
      clients: connections,
      figures,
      floor: `openssl rsa2048 ${speed.toFixed(0)}/s a core × cores`,
      ratio,
      goal: connections === 64 ? atLeast(ratio, 0.8) : undefined,
    })
  }
  return [...rows, ...(await besideAllCores(bench, rows))]
}

/** The same beside `openssl` on every core of the machine, which the load needs too. */
async function besideAllCores(bench: Bench, rows: readonly Row[]): Promise<Row[]> {
  const cores = availableParallelism()
  const all = await measureOpenssl('rsa2048', cores, bench.quick ? 1 : 2)
  const row = rows.find((one) => one.clients === 64)
  if (all === undefined || row === undefined) return []
  const ratio = (row.figures.perSecond ?? Number.NaN) / all.perSecond
  const floor = `openssl rsa2048 ${all.perSecond.toFixed(0)}/s on all ${cores} cores`
  return [{ scenario: token.title, clients: 64, figures: row.figures, floor, ratio, goal: undefined }]
}

async function besideBare(bench: Bench, server: OurServer, agents: readonly Agent[]): Promise<Row[]> {
  const contest = { pid: server.pid, port: server.port, asks: agents.map(tokenAsk), status: 200 }
  const pace = { ...bench.pace, concurrencies: bench.pace.concurrencies.filter((one) => one === 64) }
  const turns = await takeTurns(token.title, contest, pace, bench.say)
  return throughputRows(token.title, turns)
}
