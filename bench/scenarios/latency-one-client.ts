import { measureDisk } from '../disk.ts'
import { measureOpenssl } from '../openssl.ts'
import { temporaryDirectory } from '../processes.ts'
import { atMost } from '../report.ts'
import type { Scenario } from '../scenario.ts'
import { furnish, startOurs } from '../server.ts'
import { takeTurns } from '../turns.ts'
import { AGENTS, issueAsk } from './issue.ts'

const SLACK_MS = 1

/** What one issue costs when nobody else is there: the floor's latency, one sync and one signature cannot be saved. */
export const latencyOneClient: Scenario = {
  name: 'latency-one-client',
  title: 'Issue, one client: latency (p50)',
  async run(bench) {
    const dataDir = temporaryDirectory(bench.directory)
    const server = await startOurs({ ...bench, dataDir })
    const agents = await furnish(server, AGENTS)
    const before = measureDisk(dataDir, bench.quick ? 100 : 1_000)
    const signing = await measureOpenssl('ecdsap256', 1, bench.quick ? 1 : 2)
    const contest = { pid: server.pid, port: server.port, asks: agents.map(issueAsk), status: 201 }
    const [turns] = await takeTurns(
      latencyOneClient.title,
      contest,
      { ...bench.pace, concurrencies: [1] },
      bench.say,
    )
    const after = measureDisk(dataDir, bench.quick ? 100 : 1_000)
    await server.stop()
    if (turns === undefined) return []
    const syncMs = (before.syncMs + after.syncMs) / 2
    const signMs = signing?.signMs ?? 0
    const allowed = turns.floor.p50 + syncMs + signMs + SLACK_MS
    const parts = [turns.floor.p50, syncMs, signMs, SLACK_MS].map((part) => part.toFixed(3))
    const ratio = turns.ours.p50 / allowed
    return [
      {
        scenario: latencyOneClient.title,
        clients: 1,
        figures: turns.ours,
        floor: `floor + fdatasync + ES256 + 1 = ${parts.join(' + ')} = ${allowed.toFixed(2)} ms`,
        ratio,
        goal: atMost(ratio, 1),
        detail: { before, after, signing, floor: turns.floor },
      },
    ]
  },
}
