import { burstsAgainst } from '../against.ts'
import { alternateBursts, startBaseline } from '../bursts.ts'
import { measureDisk } from '../disk.ts'
import { measureOpenssl } from '../openssl.ts'
import { atMost, type Row } from '../report.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { issueTarget } from './issue.ts'

const SLACK_MS = 1

/** The latency of one issue without concurrency. The baseline's latency, one disk sync and one signature are unavoidable. */
export const latencyOneClient: Scenario = {
  name: 'latency-one-client',
  title: 'Issue, one client: latency (p50)',
  async run(bench) {
    const pace = { ...bench.pace, concurrencies: [1] }
    const { against } = bench
    if (against === undefined) return besideTheParts(bench, pace)
    const open = (checkout: Bench['checkout']) => issueTarget(bench, checkout)
    return burstsAgainst(bench, against, latencyOneClient.title, open, pace)
  },
}

async function besideTheParts(bench: Bench, pace: Bench['pace']): Promise<Row[]> {
  const ours = await issueTarget(bench, bench.checkout)
  const bare = await startBaseline(ours)
  const before = measureDisk(ours.dataDir, bench.quick ? 100 : 1_000)
  const signing = await measureOpenssl('ecdsap256', 1, bench.quick ? 1 : 2)
  const [comparison] = await alternateBursts(latencyOneClient.title, ours, bare, pace, bench.say)
  const after = measureDisk(ours.dataDir, bench.quick ? 100 : 1_000)
  await bare.stop()
  await ours.stop()
  if (comparison === undefined) return []
  const syncMs = (before.syncMs + after.syncMs) / 2
  const signMs = signing?.signMs ?? 0
  const { p50 } = comparison.reference
  const allowed = p50 + syncMs + signMs + SLACK_MS
  const parts = [p50, syncMs, signMs, SLACK_MS].map((part) => part.toFixed(3))
  const ratio = comparison.ours.p50 / allowed
  return [
    {
      scenario: latencyOneClient.title,
      clients: 1,
      figures: comparison.ours,
      comparedWith: `bare node:http + fdatasync + ES256 + 1 = ${parts.join(' + ')} = ${allowed.toFixed(2)} ms`,
      ratio,
      goal: atMost(ratio, 1),
      detail: { before, after, signing, reference: comparison.reference },
    },
  ]
}
