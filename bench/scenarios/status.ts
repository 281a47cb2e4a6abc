import { burstsAgainst } from '../against.ts'
import { alternateBursts, type RunningTarget, startBaseline } from '../bursts.ts'
import { temporaryDirectory } from '../processes.ts'
import { baselineRows } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Agent, addAgents, type Checkout, startOurs } from '../server.ts'
import { AGENTS, GOAL_CLIENTS } from './issue.ts'

/** The agents hold no credentials, so that the reply is small. */
export const status = reads({
  name: 'status',
  title: 'GET /v1/status',
  agents: AGENTS,
  asks: (agents) => agents.map(({ token }) => ({ method: 'GET', path: '/v1/status', bearer: token })),
  atLeast: 0.65,
})

/** Local administration over loopback: each call looks up the peer's uid and leaves an audit entry. */
export const localAdmin = reads({
  name: 'local-admin',
  title: 'GET /v1/admin/agents by the local host',
  agents: 1,
  asks: () => [{ method: 'GET', path: '/v1/admin/agents' }],
})

interface Reads {
  readonly name: string
  readonly title: string
  readonly agents: number
  readonly asks: (agents: readonly Agent[]) => RunningTarget['asks']
  /** The least share of the baseline's throughput. */
  readonly atLeast?: number
}

function reads({ name, title, agents, asks, atLeast }: Reads): Scenario {
  const open = async (bench: Bench, checkout: Checkout): Promise<RunningTarget> => {
    const server = await startOurs({ ...bench, checkout, dataDir: temporaryDirectory(bench.directory) })
    const added = await addAgents(server, bench.quick ? 1 : agents)
    return { pid: server.pid, port: server.port, asks: asks(added), status: 200, stop: server.stop }
  }
  const run = async (bench: Bench) => {
    if (bench.against !== undefined)
      return burstsAgainst(bench, bench.against, title, (checkout) => open(bench, checkout))
    const ours = await open(bench, bench.checkout)
    const bare = await startBaseline(ours)
    const comparisons = await alternateBursts(title, ours, bare, bench.pace, bench.say)
    await bare.stop()
    await ours.stop()
    return baselineRows(
      title,
      comparisons,
      atLeast === undefined ? undefined : { clients: GOAL_CLIENTS, atLeast },
    )
  }
  return { name, title, run }
}
