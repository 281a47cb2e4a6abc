import { burstsAgainst } from '../against.ts'
import { alternateBursts, type RunningTarget, startBaseline } from '../bursts.ts'
import { temporaryDirectory } from '../processes.ts'
import { baselineRows } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { addAgents, type Checkout, startOurs } from '../server.ts'
import { AGENTS, GOAL_CLIENTS } from './issue.ts'

/** The agents hold no credentials, so that the reply is small. */
export const status: Scenario = {
  name: 'status',
  title: 'GET /v1/status',
  async run(bench) {
    const open = (checkout: Checkout) => statusTarget(bench, checkout)
    if (bench.against !== undefined) return burstsAgainst(bench, bench.against, status.title, open)
    const ours = await open(bench.checkout)
    const bare = await startBaseline(ours)
    const comparisons = await alternateBursts(status.title, ours, bare, bench.pace, bench.say)
    await bare.stop()
    await ours.stop()
    return baselineRows(status.title, comparisons, { clients: GOAL_CLIENTS, atLeast: 0.65 })
  },
}

async function statusTarget(bench: Bench, checkout: Checkout): Promise<RunningTarget> {
  const server = await startOurs({ ...bench, checkout, dataDir: temporaryDirectory(bench.directory) })
  const agents = await addAgents(server, bench.quick ? 4 : AGENTS)
  return {
    pid: server.pid,
    port: server.port,
    asks: agents.map(({ token }) => ({ method: 'GET', path: '/v1/status', bearer: token })),
    status: 200,
    stop: server.stop,
  }
}
