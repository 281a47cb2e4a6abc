import { burstsAgainst } from '../against.ts'
import { alternateBursts, type RunningTarget, startBaseline } from '../bursts.ts'
import { temporaryDirectory } from '../processes.ts'
import { baselineRows } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { addAgents, type Checkout, startOurs } from '../server.ts'

/** Local administration over loopback: each call looks up the peer's uid and leaves an audit entry. */
export const localAdmin: Scenario = {
  name: 'local-admin',
  title: 'GET /v1/admin/agents by the local host',
  async run(bench) {
    const open = (checkout: Checkout) => localAdminTarget(bench, checkout)
    if (bench.against !== undefined) return burstsAgainst(bench, bench.against, localAdmin.title, open)
    const ours = await open(bench.checkout)
    const bare = await startBaseline(ours)
    const comparisons = await alternateBursts(localAdmin.title, ours, bare, bench.pace, bench.say)
    await bare.stop()
    await ours.stop()
    return baselineRows(localAdmin.title, comparisons)
  },
}

async function localAdminTarget(bench: Bench, checkout: Checkout): Promise<RunningTarget> {
  const server = await startOurs({ ...bench, checkout, dataDir: temporaryDirectory(bench.directory) })
  await addAgents(server, 1)
  return {
    pid: server.pid,
    port: server.port,
    asks: [{ method: 'GET', path: '/v1/admin/agents' }],
    status: 200,
    stop: server.stop,
  }
}
