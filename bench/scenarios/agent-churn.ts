import { alternatePairs, rowsOfEach } from '../against.ts'
import { burstOf } from '../bursts.ts'
import { startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { freshDatabase } from '../postgres.ts'
import { atLeast, type Row } from '../report.ts'
import { fetchJson, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import type { Checkout } from '../server.ts'
import { GOAL_CLIENTS, type IssueTarget, issueTarget } from './issue.ts'

const AGENTS_PER_SECOND = 5
const GOAL = 0.9

/** The share of its issuing that a server keeps while agents are created, call once and are deleted. */
export const agentChurn: Scenario = {
  name: 'agent-churn',
  title: `Issue while ${AGENTS_PER_SECOND} agents a second come and go`,
  async run(bench) {
    return rowsOfEach(bench, async (checkout) => [
      await churnRow(bench, checkout, 'SQLite'),
      await churnRow(bench, checkout, 'PostgreSQL', await freshDatabase(bench.say)),
    ])
  },
}

async function churnRow(bench: Bench, checkout: Checkout, store: string, url?: string): Promise<Row> {
  const target = await issueTarget(bench, checkout, { databaseUrl: url })
  const loader = startLoader()
  const burst = () => burstOf(loader, target, GOAL_CLIENTS, bench.pace)
  await burst()
  const pairs = await alternatePairs(bench.pace.pairs, {
    ours: () => whileAgentsComeAndGo(target, burst),
    reference: burst,
  })
  await target.stop()
  const ratios = pairs.map(({ ours, reference }) => ours.perSecond / reference.perSecond)
  const ratio = median(ratios)
  const figure = (read: (one: (typeof pairs)[number]) => number) => median(pairs.map(read))
  bench.say(`${agentChurn.title}, ${store}: ratio ${ratio.toFixed(3)}`)
  return {
    scenario: `${agentChurn.title}, ${store}${checkout === bench.checkout ? '' : `, ${checkout.directory}`}`,
    clients: GOAL_CLIENTS,
    figures: { perSecond: figure(({ ours }) => ours.perSecond), p99: figure(({ ours }) => ours.p99) },
    comparedWith: `without them ${figure(({ reference }) => reference.perSecond).toFixed(0)}/s`,
    ratio,
    goal: checkout === bench.checkout ? atLeast(ratio, GOAL) : undefined,
    detail: { ratios },
  }
}

let made = 0

async function whileAgentsComeAndGo<T>({ port }: IssueTarget, work: () => Promise<T>): Promise<T> {
  const under: Promise<void>[] = []
  const timer = setInterval(() => under.push(comeAndGo(port)), 1_000 / AGENTS_PER_SECOND)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    await Promise.all(under)
  }
}

async function comeAndGo(port: number): Promise<void> {
  made += 1
  const name = `churn-${made}`
  const json = { name, scopes: [] }
  const { token } = await fetchJson<{ token: string }>(
    { method: 'POST', path: '/v1/admin/agents', json },
    port,
  )
  await fetchJson({ method: 'GET', path: '/v1/status', bearer: token }, port)
  const gone = await record({ method: 'DELETE', path: `/v1/admin/agents/${name}` }, port)
  if (gone.status !== 204) throw new Error(`deleting ${name} answered ${gone.status}`)
}
