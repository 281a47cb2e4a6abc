import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { newHome, spawnCli } from '../../cli/support.ts'
import { eventually } from '../../support/app.ts'
import { must, openWorld, type World } from '../../support/fault-world.ts'
import { freePort } from '../../support/free-port.ts'
import { openRedisBench } from '../../support/redis-kind.ts'
import type { ShownRun } from '../../support/run-ends-world.ts'
import { openUpstreamDatabase, type UpstreamDatabase } from '../../support/upstream-database.ts'
import { startUpstream, type Upstream, usesOf } from './world.ts'

export interface ProcessWorld {
  /** The server is a process of its own, which can be frozen and killed, and started again at the same address. */
  readonly world: World
  readonly home: string
  readonly bareEnv: Readonly<Record<string, string>>
  /** Of the backend `gateway`. */
  readonly plain: Upstream
  /** Of the backend `orders`. */
  readonly database: UpstreamDatabase
  /** A new agent of all backends, and the environment of its commands. */
  newRunner(): Promise<{ name: string; env: Readonly<Record<string, string>> }>
  call<T>(method: string, path: string, body?: unknown): Promise<T>
  close(): Promise<void>
}

/** With the backends `gateway` (HTTP), `orders` (PostgreSQL) and `cache` (Redis), whose upstreams are here. */
export async function openProcessWorld(): Promise<ProcessWorld> {
  const database = await openUpstreamDatabase()
  // Otherwise a statement goes on after its connection.
  await database.root.query(
    `ALTER DATABASE ${database.database.name} SET client_connection_check_interval = '100ms'`,
  )
  const [cache, plain] = await Promise.all([
    openRedisBench(),
    startUpstream((handle) => createServer(handle), 'http'),
  ])
  const address = `127.0.0.1:${await freePort()}`
  const { home, env: bareEnv } = await newHome()
  const world = await openWorld({ flags: ['--listen', address] })
  await world.start()
  const call = <T>(method: string, path: string, body?: unknown) =>
    must<T>(world.server(), undefined, method, path, body)
  const lives = { default_ttl: '1h', max_ttl: '1h' }
  for (const backend of [
    {
      type: 'jwt',
      name: 'gateway',
      config: { audience: 'https://gateway.test' },
      uses: usesOf(plain.origin),
    },
    { type: 'postgres', name: 'orders', config: database.config() },
    { type: 'redis', name: 'cache', config: cache.settings },
  ])
    await call('POST', '/v1/admin/backends', { ...backend, ...lives })
  return {
    ...{ world, home, bareEnv, plain, database, call },
    async newRunner() {
      const name = `agent-${randomBytes(4).toString('hex')}`
      const scopes = ['gateway', 'orders', 'cache']
      const { token } = await call<{ token: string }>('POST', '/v1/admin/agents', { name, scopes })
      return { name, env: { ...bareEnv, MAYFLY_SERVER: `http://${address}`, MAYFLY_TOKEN: token } }
    },
    async close() {
      plain.close()
      await world.close()
      await Promise.all([database.close(), cache.close(), rm(home, { recursive: true, force: true })])
    },
  }
}

/** An open stream of HTTP and a session of PostgreSQL in a statement that does not end. */
const LOAD = [
  'curl -sSN -H "Authorization: Bearer $GATEWAY_TOKEN" "$MAYFLY_URL_GATEWAY_API/v1/stream" > /dev/null 2>&1 & ',
  'psql -XAtqc "SELECT pg_sleep(600)" > /dev/null 2>&1 & ',
].join('')

export interface Loaded {
  readonly agent: string
  readonly command: ReturnType<typeof spawnCli>
  readonly child: number
  readonly proxy: number
  run(): Promise<ShownRun>
}

/** A `mayfly run --proxy` with a heartbeat of a second whose connections are at work; the child then does `rest`. */
export async function loadedRun(world: ProcessWorld, rest = 'read -r line'): Promise<Loaded> {
  const { name, env } = await world.newRunner()
  const flags = ['--backend', 'gateway', '--backend', 'orders', '--heartbeat', '1s']
  const script = `${LOAD}echo "ready $$"; ${rest}`
  const command = spawnCli(['run', '--proxy', ...flags, '--', 'sh', '-c', script], { env, stdin: 'open' })
  const child = Number(/ready (\d+)/.exec(await command.said(/ready \d+\n/, 'stdout'))?.[1])
  await eventually(async () => {
    if (world.plain.streams() !== 1 || (await sessions(world)) !== 1) throw new Error('not at work yet')
  })
  return {
    agent: name,
    command,
    child,
    proxy: await proxyOf(command.child.pid),
    run: async () => {
      const [run] = await world.call<ShownRun[]>('GET', `/v1/admin/runs?agent=${name}`)
      if (run === undefined) throw new Error('there is no run')
      return run
    },
  }
}

/** Of roles that credentials have. */
export async function sessions({ database }: ProcessWorld): Promise<number> {
  const { rows } = await database.root.query(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'mf\\_%' AND query LIKE '%pg_sleep%'`,
  )
  return rows[0].n
}

/** Of a `mayfly run`. */
export async function proxyOf(pid: number | undefined): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  for (const child of children.trim().split(' ')) {
    const line = await readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '')
    if (line.includes('run-proxy')) return Number(child)
  }
  throw new Error('there is no proxy')
}

/** Its processor time so far, in ms; undefined: it has gone. */
export async function cpuMsOf(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (stat === '' || fields[0] === 'Z') return undefined
  return (Number(fields[11]) + Number(fields[12])) * 10
}
