import { newSigner } from '../../test/support/identity-tokens.ts'
import { alternate, burstOf, comparisonOf, described, type Pace, type Pair } from '../bursts.ts'
import { issuedBy, newToken, withConfig } from '../keyless.ts'
import { createLatencyHistogram, quantilesOf } from '../latency.ts'
import { type Loader, startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { freshDatabase } from '../postgres.ts'
import { temporaryDirectory } from '../processes.ts'
import { againstRows, atLeast, atMost, type Row } from '../report.ts'
import { type Ask, encode, record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Agent, addAgents, type OurServer, startOurs } from '../server.ts'
import { AGENTS, atGoal, GOAL_CLIENTS, type IssueTarget, issueTarget } from './issue.ts'

/** The least rate of logins with a foreign token, as a share of that of client credentials. */
const LEAST = 0.6
/** A storm: this many jobs begin within a minute, each for the first time. */
const STORM = 2_000
const STORM_MS = 60_000
const SLOWEST_MS = 1_000
/** The least share of its throughput that issuing keeps beside a storm. */
const LEAST_BESIDE = 0.8
/** Tokens that a burst may use, so that none is used twice. */
const TOKENS_PER_SECOND = 6_000

const ISSUER = 'https://issuer.bench'

/** Logins of workloads: against client credentials, and as a storm beside issuing. */
export const keyless: Scenario = {
  name: 'keyless',
  title: 'Log in with a foreign token (RS256)',
  async run(bench) {
    const rows: Row[] = []
    for (const store of ['SQLite', 'PostgreSQL']) {
      const url = async () => (store === 'SQLite' ? undefined : freshDatabase(bench.say))
      rows.push(
        ...(await againstSecrets(bench, store, await url())),
        ...(await storm(bench, store, await url())),
      )
    }
    return rows
  },
}

/** An issuer whose keys are in the configuration: `login` signs a new token each time. */
function newIssuer() {
  const signer = newSigner('RS256')
  const entry = {
    ...issuedBy(ISSUER, signer),
    scopes: ['bench'],
    subject: 'repo:acme/shop:ref:refs/heads/main',
    claims: { repository_id: '74', repository_owner_id: '65' },
  }
  // Entries that share a job, and one whose jobs are agents of their own.
  const config = {
    identities: [
      ...Array.from({ length: AGENTS }, (_, n) => ({
        ...entry,
        name: `shared-${n}`,
        agent: `shared-${n}`,
        claims: { ...entry.claims, job: `job-${n}` },
      })),
      {
        ...entry,
        name: 'storm',
        agent: 'storm-{run_id}',
        agent_ttl: '10m',
        claims: { ...entry.claims, job: 'storm' },
      },
    ],
  }
  const login = (claims: object): Ask => ({
    method: 'POST',
    path: '/oauth/token',
    form: {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: newToken(signer, { iss: ISSUER, sub: entry.subject, ...entry.claims, ...claims }),
    },
  })
  return { config, login }
}

async function againstSecrets(bench: Bench, store: string, databaseUrl: string | undefined): Promise<Row[]> {
  const title = `${keyless.title}, ${store}`
  const issuer = newIssuer()
  const server = await startOurs({
    ...bench,
    databaseUrl,
    dataDir: temporaryDirectory(bench.directory),
    environment: withConfig(bench, issuer.config),
  })
  const secrets = (await addAgents(server, AGENTS)).map(withSecret)
  const pace = atGoal(bench.pace)
  const clients = pace.concurrencies[0] ?? GOAL_CLIENTS
  const loader = startLoader()
  const keylessly = () => onceEach(loader, server, issuer.login, clients, pace)
  const bySecret = () => burstOf(loader, { ...server, asks: secrets, status: 200 }, clients, pace)
  await keylessly()
  await bySecret()
  const pairs: Pair[] = []
  for (let n = 0; n < pace.pairs; n += 1) pairs.push(await alternate(n, keylessly, bySecret))
  await server.stop()
  const compared = comparisonOf(clients, pairs)
  bench.say(`${title}, ${clients} clients: ${described(compared)}`)
  return againstRows(title, 'client_credentials', [compared]).map((row) => ({
    ...row,
    goal: atLeast(row.ratio, LEAST),
  }))
}

const withSecret = (agent: Agent): Ask => ({
  method: 'POST',
  path: '/oauth/token',
  form: { grant_type: 'client_credentials', client_id: agent.clientId, client_secret: agent.clientSecret },
})

/** A burst in which each token is used once: they are signed before it begins. */
function onceEach(
  loader: Loader,
  { port, pid }: OurServer,
  login: (claims: object) => Ask,
  clients: number,
  { warmMs, burstMs }: Pick<Pace, 'warmMs' | 'burstMs'>,
) {
  const count = Math.ceil(((warmMs + burstMs) / 1_000) * TOKENS_PER_SECOND)
  const requests = Array.from({ length: count }, (_, n) => encode(login({ job: `job-${n % AGENTS}` }), port))
  return loader.run({ port, requests, connections: clients, warmMs, measureMs: burstMs, status: 200 }, pid)
}

async function storm(bench: Bench, store: string, databaseUrl: string | undefined): Promise<Row[]> {
  const title = `${STORM} first logins in a minute, ${store}`
  const issuer = newIssuer()
  const environment = withConfig(bench, issuer.config)
  const target = await issueTarget(bench, bench.checkout, { databaseUrl, environment })
  const loader = startLoader()
  const burst = () => burstOf(loader, target, GOAL_CLIENTS, bench.pace)
  await burst()
  const latencies = createLatencyHistogram()
  const quiet: number[] = []
  const beside: number[] = []
  const stormMs = bench.quick ? STORM_MS / 30 : STORM_MS
  const ends = Date.now() + stormMs
  while (Date.now() < ends) {
    const storming = startJobs(target, issuer.login, latencies)
    const { perSecond } = await burst()
    await storming.stop()
    beside.push(perSecond)
    quiet.push((await burst()).perSecond)
  }
  await target.stop()
  const ratio = median(beside.map((one, n) => one / (quiet[n] ?? Number.NaN)))
  const { p50, p99 } = quantilesOf(latencies)
  bench.say(
    `${title}: ${latencies.count} logins, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; issuing beside ${ratio.toFixed(3)}`,
  )
  // Half of the time passes without logins.
  const jobs = { perSecond: latencies.count / (stormMs / 2_000), p50, p99 }
  return [
    {
      clients: undefined,
      figures: jobs,
      scenario: `${title}: p99`,
      comparedWith: '1 s',
      ratio: p99 / SLOWEST_MS,
      goal: atMost(p99 / SLOWEST_MS, 1),
    },
    {
      clients: GOAL_CLIENTS,
      figures: { perSecond: median(beside) },
      scenario: `${title}: issuing beside`,
      comparedWith: `no logins: ${median(quiet).toFixed(0)}/s`,
      ratio,
      goal: atLeast(ratio, LEAST_BESIDE),
    },
  ]
}

let begun = 0

/** Jobs that log in at the rate of a storm, whether or not those before have been answered. */
function startJobs(
  { port }: IssueTarget,
  login: (claims: object) => Ask,
  latencies: ReturnType<typeof createLatencyHistogram>,
) {
  const under: Promise<void>[] = []
  const timer = setInterval(() => {
    begun += 1
    under.push(logIn(login({ job: 'storm', run_id: String(begun) })))
  }, STORM_MS / STORM)
  const logIn = async (ask: Ask) => {
    const from = performance.now()
    const { status, body } = await record(ask, port)
    if (status !== 200) throw new Error(`a login answered ${status}: ${body}`)
    latencies.record(Math.max(1, Math.round((performance.now() - from) * 1_000)))
  }
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(under)
    },
  }
}
