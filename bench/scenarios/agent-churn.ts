import { alternatePairs, rowsOfEach } from '../against.ts'
import { burstOf } from '../bursts.ts'
import { JOBS_AND_PLATFORM, logIn, newJob, newPlatformAgent, withConfig } from '../keyless.ts'
import { startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { freshDatabase } from '../postgres.ts'
import { atLeast, type Row } from '../report.ts'
import { fetchJson, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import type { Checkout } from '../server.ts'
import { GOAL_CLIENTS, issueTarget } from './issue.ts'

const GOAL = 0.9

/** How agents come and go. */
interface Churn {
  readonly title: string
  readonly perSecond: number
  /** With entries that trust the bench. */
  readonly isKeyless: boolean
  /** One agent, from its beginning to its end. */
  run(port: number): Promise<void>
}

const WITH_SECRETS: Churn = {
  title: 'Issue while 5 agents a second come and go',
  perSecond: 5,
  isKeyless: false,
  run: comeAndGo,
}
const JOBS: Churn = {
  title: 'Issue while 20 jobs a second log in without a secret, and out',
  perSecond: 20,
  isKeyless: true,
  run: logInAndOut,
}
const PLATFORM: Churn = {
  title: 'Issue while 20 new agents of a platform a second log in',
  perSecond: 20,
  isKeyless: true,
  run: async (port) => {
    await fetchJson(logIn(newPlatformAgent()), port)
  },
}

/** The share of its issuing that a server keeps while agents are created, call once and are deleted. */
export const agentChurn: Scenario = {
  name: 'agent-churn',
  title: WITH_SECRETS.title,
  run: (bench) => rowsOfEach(bench, (checkout) => bothStores(bench, checkout, WITH_SECRETS)),
}

/** The same with agents that have no secrets; only of this checkout, whose configuration knows them. */
export const agentChurnKeyless: Scenario = {
  name: 'agent-churn-keyless',
  title: 'Issue while agents without secrets come and go',
  run: async (bench) => [
    ...(await bothStores(bench, bench.checkout, JOBS)),
    ...(await bothStores(bench, bench.checkout, PLATFORM)),
  ],
}

async function bothStores(bench: Bench, checkout: Checkout, churn: Churn): Promise<Row[]> {
  return [
    await churnRow(bench, checkout, churn, 'SQLite'),
    await churnRow(bench, checkout, churn, 'PostgreSQL', await freshDatabase(bench.say)),
  ]
}

async function churnRow(
  bench: Bench,
  checkout: Checkout,
  churn: Churn,
  store: string,
  databaseUrl?: string,
): Promise<Row> {
  const environment = churn.isKeyless ? withConfig(bench, JOBS_AND_PLATFORM) : {}
  const target = await issueTarget(bench, checkout, { databaseUrl, environment })
  const loader = startLoader()
  const burst = () => burstOf(loader, target, GOAL_CLIENTS, bench.pace)
  await burst()
  const pairs = await alternatePairs(bench.pace.pairs, {
    ours: () => whileAgentsComeAndGo(target.port, churn, burst),
    reference: burst,
  })
  await target.stop()
  const ratios = pairs.map(({ ours, reference }) => ours.perSecond / reference.perSecond)
  const ratio = median(ratios)
  const figure = (read: (one: (typeof pairs)[number]) => number) => median(pairs.map(read))
  bench.say(`${churn.title}, ${store}: ratio ${ratio.toFixed(3)}`)
  return {
    scenario: `${churn.title}, ${store}${checkout === bench.checkout ? '' : `, ${checkout.directory}`}`,
    clients: GOAL_CLIENTS,
    figures: { perSecond: figure(({ ours }) => ours.perSecond), p99: figure(({ ours }) => ours.p99) },
    comparedWith: `without them ${figure(({ reference }) => reference.perSecond).toFixed(0)}/s`,
    ratio,
    goal: checkout === bench.checkout ? atLeast(ratio, GOAL) : undefined,
    detail: { ratios },
  }
}

async function whileAgentsComeAndGo<T>(
  port: number,
  { perSecond, run }: Churn,
  work: () => Promise<T>,
): Promise<T> {
  const under: Promise<void>[] = []
  const timer = setInterval(() => under.push(run(port)), 1_000 / perSecond)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    await Promise.all(under)
  }
}

let made = 0

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

/** Its login was the only one, so that the agent ends with it. */
async function logInAndOut(port: number): Promise<void> {
  const { access_token: bearer } = await fetchJson<{ access_token: string }>(logIn(newJob()), port)
  await fetchJson({ method: 'GET', path: '/v1/status', bearer }, port)
  const gone = await record({ method: 'DELETE', path: '/v1/login', bearer }, port)
  if (gone.status !== 204) throw new Error(`logging out answered ${gone.status}: ${gone.body}`)
}
