import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { rulesFor } from '../../src/backends/redis/rules.ts'
import { openMysqlBench } from '../../test/support/mysql-kind.ts'
import { openRedisBench } from '../../test/support/redis-kind.ts'
import type { Measured } from '../bare-roles.ts'
import { alternate, burstOf, summaryOf } from '../bursts.ts'
import { openJournal } from '../journal.ts'
import { createLatencyHistogram, quantilesOf } from '../latency.ts'
import { type Burst, type Loader, startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { onExit, temporaryDirectory } from '../processes.ts'
import { atLeast, type Row } from '../report.ts'
import { record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { BACKEND, type OurServer, startOurs } from '../server.ts'

const SHARE = 0.7
/** Mayfly records each request before it asks the upstream, and each credential after that. */
const COMMITS = 'between two synced writes'
const GOAL_CLIENTS = 8

/** A real upstream, and what Mayfly has to do there for each credential, by the driver that Mayfly uses. */
interface Upstream {
  readonly kind: string
  readonly config: object
  readonly bare: string
  readonly scopes: readonly string[]
  /** A connection that creates the account of this name. */
  connect(): Promise<{ create(name: string): Promise<unknown>; close(): unknown }>
  /** Names of accounts that begin so. */
  names(prefix: string): Promise<string[]>
  drop(name: string): Promise<unknown>
}

/** Issuing credentials of the kinds `mysql` and `redis`, beside the bare statements that this takes. */
export const accountKinds: Scenario = {
  name: 'account-kinds',
  title: 'Kinds mysql and redis',
  async run(bench) {
    const rows: Row[] = []
    for (const open of [openMysql, openRedis]) {
      const upstream = await open()
      const server = await startOurs({ ...bench, dataDir: temporaryDirectory(bench.directory) })
      const { kind, config } = upstream
      await server.admin('POST', '/v1/admin/backends', { type: kind, name: BACKEND, config })
      for (const clients of bench.kind.clients)
        rows.push(...(await issueRows(bench, upstream, server, clients)))
      await server.stop()
    }
    return rows
  },
}

async function openMysql(): Promise<Upstream> {
  const server = await openMysqlBench()
  onExit(server.close)
  const { username, password = '' } = server.settings
  const account = (name: string) => `'${name}'@'%'`
  return {
    kind: 'mysql',
    config: server.settings,
    bare: 'CREATE USER and GRANT by mysql2',
    scopes: ['shop:read'],
    async connect() {
      const client = await server.login({ user: username, password })
      const hash = `*${'0123456789ABCDEF0123'.repeat(2)}`
      return {
        async create(name) {
          await client.query(
            `CREATE USER ${account(name)} IDENTIFIED VIA mysql_native_password USING '${hash}'`,
          )
          await client.query(`GRANT SELECT, SHOW VIEW ON \`shop\`.* TO ${account(name)}`)
        },
        close: () => client.end(),
      }
    },
    async names(prefix) {
      const rows = await server.sql(`SELECT User AS name FROM mysql.user WHERE User LIKE '${prefix}%'`)
      return rows.map(({ name }) => String(name))
    },
    drop: (name) => server.sql(`DROP USER ${account(name)}`),
  }
}

async function openRedis(): Promise<Upstream> {
  const server = await openRedisBench()
  onExit(server.close)
  const { username, password = '' } = server.settings
  const scopes = ['read:shop:*']
  const rules = ['reset', 'on', `#${'0123456789abcdef'.repeat(4)}`, ...rulesFor(scopes)]
  return {
    kind: 'redis',
    config: server.settings,
    bare: 'ACL SETUSER by ioredis',
    scopes,
    async connect() {
      const client = server.login({ username, password })
      return {
        create: (name) => client.call('ACL', 'SETUSER', name, ...rules),
        close: () => client.disconnect(),
      }
    },
    async names(prefix) {
      const users = (await server.call('ACL', 'USERS')) as string[]
      return users.filter((name) => name.startsWith(prefix))
    },
    drop: (name) => server.call('ACL', 'DELUSER', name),
  }
}

/** Bursts of issuing that alternate with the bare statements at the same number of clients. */
async function issueRows(
  bench: Bench,
  upstream: Upstream,
  server: OurServer,
  clients: number,
): Promise<Row[]> {
  const loader = startLoader()
  const seconds = bench.quick ? 1 : 5
  const rounds: Round[] = []
  for (let n = 0; n < bench.pace.pairs; n += 1) {
    const agent = `${upstream.kind}-${clients}-${n}`
    const { ours, reference } = await alternate(
      n,
      () => issueAs(agent, { server, loader, upstream, clients, seconds }),
      async () => ({
        bare: await createBare(upstream, clients, seconds, () => Promise.resolve()),
        recorded: await createRecorded(bench, upstream, clients, seconds),
      }),
    )
    rounds.push({ ours, ...reference })
  }
  const scenario = `Issue, ${upstream.kind}`
  const rows = [
    comparedRow(scenario, upstream.bare, clients, rounds, ({ bare }) => bare),
    comparedRow(
      `${scenario}: recorded`,
      `${upstream.bare}, ${COMMITS}`,
      clients,
      rounds,
      (one) => one.recorded,
    ),
  ]
  for (const row of rows)
    bench.say(`${row.scenario}, ${clients} clients: ${row.comparedWith}, ratio ${row.ratio.toFixed(3)}`)
  return rows
}

/** Ours, the bare statements, and these with what makes a record of each durable. */
export interface Round {
  readonly ours: Burst
  readonly bare: Measured
  readonly recorded: Measured
}

export function comparedRow(
  scenario: string,
  what: string,
  clients: number,
  rounds: readonly Round[],
  reference: (round: Round) => Measured,
): Row {
  const of = (read: (one: Measured) => number) => median(rounds.map((round) => read(reference(round))))
  const latency = `p50 ${of((one) => one.p50).toFixed(2)}, p99 ${of((one) => one.p99).toFixed(2)} ms`
  const ratios = rounds.map((round) => round.ours.perSecond / reference(round).perSecond)
  const ratio = median(ratios)
  return {
    scenario,
    clients,
    figures: summaryOf(rounds.map(({ ours }) => ours)),
    comparedWith: `${what}: ${of((one) => one.perSecond).toFixed(0)}/s, ${latency}`,
    ratio,
    goal: clients === GOAL_CLIENTS ? atLeast(ratio, SHARE) : undefined,
    detail: { ratios, reference: rounds.map(reference) },
  }
}

interface Issuing {
  readonly server: OurServer
  readonly loader: Loader
  readonly upstream: Upstream
  readonly clients: number
  readonly seconds: number
}

/** Through Mayfly, whose accounts are all gone at the end: their number would change what comes next. */
async function issueAs(
  name: string,
  { server, loader, upstream, clients, seconds }: Issuing,
): Promise<Burst> {
  const scopes = [`${BACKEND}:*`]
  const { token } = await server.admin<{ token: string }>('POST', '/v1/admin/agents', { name, scopes })
  const json = { backend: BACKEND, ttl: '12h', scopes: upstream.scopes }
  const ask = { method: 'POST', path: '/api/v1/credentials', bearer: token, json } as const
  const target = { pid: server.pid, port: server.port, asks: [ask], status: 201 }
  const burst = await burstOf(loader, target, clients, { warmMs: 500, burstMs: seconds * 1_000 })
  await record({ method: 'DELETE', path: `/v1/admin/agents/${name}` }, server.port)
  while ((await upstream.names('mf_')).length > 0) await pause(100)
  return burst
}

/** The statements between two writes that are on the disk before the next step, as a record of each issue must be. */
async function createRecorded(
  { directory }: Bench,
  upstream: Upstream,
  clients: number,
  seconds: number,
): Promise<Measured> {
  const journal = await openJournal(temporaryDirectory(directory))
  try {
    return await createBare(upstream, clients, seconds, journal.write)
  } finally {
    await journal.close()
  }
}

async function createBare(
  upstream: Upstream,
  clients: number,
  seconds: number,
  write: () => Promise<void>,
): Promise<Measured> {
  const connections = await Promise.all(Array.from({ length: clients }, () => upstream.connect()))
  const histogram = createLatencyHistogram()
  const began = performance.now()
  const work = connections.map(async ({ create }) => {
    while (performance.now() - began < seconds * 1_000) {
      const from = performance.now()
      await write()
      await create(`bare_${randomInt(2 ** 47)}`)
      await write()
      histogram.record(Math.max(1, Math.round((performance.now() - from) * 1_000)))
    }
  })
  await Promise.all(work)
  const took = (performance.now() - began) / 1_000
  for (const { close } of connections) await close()
  for (const name of await upstream.names('bare_')) await upstream.drop(name)
  return { perSecond: histogram.count / took, ...quantilesOf(histogram) }
}
