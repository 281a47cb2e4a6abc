import { temporaryDirectory } from '../processes.ts'
import { throughputRows } from '../report.ts'
import type { Ask } from '../request.ts'
import type { Scenario } from '../scenario.ts'
import { furnish, startOurs } from '../server.ts'
import { takeTurns } from '../turns.ts'
import { AGENTS } from './issue.ts'

/** Of agents that hold nothing, so that the reply is as small as the floor's is cheap. */
export const status: Scenario = {
  name: 'status',
  title: 'GET /v1/status',
  async run(bench) {
    const dataDir = temporaryDirectory(bench.directory)
    const server = await startOurs({ ...bench, dataDir })
    const agents = await furnish(server, bench.quick ? 4 : AGENTS)
    const asks = agents.map(({ token }): Ask => ({ method: 'GET', path: '/v1/status', bearer: token }))
    const contest = { pid: server.pid, port: server.port, asks, status: 200 }
    const turns = await takeTurns(status.title, contest, bench.pace, bench.say)
    await server.stop()
    return throughputRows(status.title, turns, { clients: 64, atLeast: 0.65 })
  },
}
