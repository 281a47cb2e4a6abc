import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { newHome, type Spawned, spawnCli } from '../cli/support.ts'
import { CAN_CUT, type CutNetwork, openCutNetwork } from './cut-network.ts'
import { must, openWorld, type World } from './fault-world.ts'
import { freePort } from './free-port.ts'
import { joinedMain } from './joined-main.ts'
import { openMysqlBench } from './mysql-kind.ts'
import { openRedisBench } from './redis-kind.ts'
import { poll } from './server-process.ts'
import { type Holder, type Refused, startHolder } from './stubborn-holder.ts'
import { openUpstreamDatabase } from './upstream-database.ts'
import { DOORS, type Variables } from './upstream-doors.ts'

/** How often a run beats here. */
export const INTERVAL_MS = 1_000
/** Whoever is in for so long after the cause stays. */
const ENDLESS_MS = 20_000
export const UPSTREAMS = ['postgres', 'mysql', 'redis'] as const
export type Upstream = (typeof UPSTREAMS)[number]

/** What the command hands over to the holders. */
const NAMES = [
  ...['PGHOST', 'PGPORT', 'PGDATABASE', 'PGUSER', 'PGPASSWORD'],
  ...['MYSQL_HOST', 'MYSQL_PORT', 'MYSQL_DATABASE', 'MYSQL_USER', 'MYSQL_PASSWORD', 'REDIS_URL'],
]
/** Ends when it reads a line. */
const CHILD = `echo "ready $$ ${NAMES.map((name) => `$${name}`).join(' ')}"; until read -r line; do sleep 0.1; done`

export interface ShownRun {
  readonly id: string
  readonly state: 'running' | 'ended'
  readonly reason: string | null
  readonly last_beat: string
  readonly ended_at: string | null
}

/** A server with three real upstreams, and a network from which commands may come. */
export interface EndsWorld {
  readonly world: World
  /** Undefined where this user may make none. */
  readonly network: CutNetwork | undefined
  /** Starts the server, also again, at the address that the commands know. */
  start(): Promise<void>
  /** Runs a command, and gives its three credentials to holders that are in. */
  run(wish?: { by?: readonly string[]; flags?: readonly string[] }): Promise<HeldRun>
  close(): Promise<void>
}

/** A `mayfly run` whose credentials are held by somebody else, too. */
export interface HeldRun {
  readonly command: Spawned
  /** Of the command under `mayfly run`. */
  readonly child: number
  readonly holders: readonly Holder[]
  shown(): Promise<ShownRun>
  /** Since when each upstream has refused its holder, once all do. */
  refused(): Promise<Readonly<Record<Upstream, Refused>>>
  /** Ends what is left of it on this machine. */
  clear(): Promise<void>
}

async function openUpstreams() {
  // Preparing the others blocks this process for seconds, which a connection under way does not survive.
  const postgres = await openUpstreamDatabase()
  const [mysql, redis] = await Promise.all([openMysqlBench(), openRedisBench()])
  await postgres.root.query('CREATE TABLE orders (name text)')
  return {
    configs: { postgres: postgres.config(), mysql: mysql.settings, redis: redis.settings },
    close: () => Promise.all([postgres.close(), mysql.close(), redis.close()]),
  }
}

export async function openEndsWorld(): Promise<EndsWorld> {
  const upstreams = await openUpstreams()
  const network = CAN_CUT ? openCutNetwork() : undefined
  const address = `${network?.address ?? '127.0.0.1'}:${await freePort()}`
  const { home, env } = await newHome()
  const world = await openWorld({ flags: ['--listen', address] })
  await world.start()
  for (const name of UPSTREAMS)
    await must(world.server(), undefined, 'POST', '/v1/admin/backends', {
      ...{ type: name, name, config: upstreams.configs[name] },
      ...{ default_ttl: '1h', max_ttl: '1h' },
    })
  const backends = UPSTREAMS.flatMap((name) => ['--backend', name])
  const around = { ...env, MAYFLY_SERVER: `http://${address}`, MAYFLY_ALLOW_HTTP: '1' }

  async function run({ by, flags = [] }: { by?: readonly string[]; flags?: readonly string[] } = {}) {
    const name = `agent-${randomBytes(4).toString('hex')}`
    const agent = await must<{ token: string }>(world.server(), undefined, 'POST', '/v1/admin/agents', {
      name,
      scopes: [...UPSTREAMS],
    })
    const command = spawnCli(
      ['run', '--heartbeat', `${INTERVAL_MS}ms`, ...flags, ...backends, '--', 'sh', '-c', CHILD],
      {
        env: { ...around, MAYFLY_TOKEN: agent.token },
        stdin: 'open',
        main: joinedMain(),
        ...(by === undefined ? {} : { by }),
      },
    )
    const ready = /ready (\d+) (.*)\n/.exec(await command.said(/ready .*\n/, 'stdout'))
    const [child = 0, values = ''] = [Number(ready?.[1]), ready?.[2]]
    const variables = variablesOf(values.split(' '))
    const holders = await Promise.all(DOORS.map((door) => startHolder(door(variables))))
    return heldRun(world, name, { command, child, holders })
  }
  return {
    ...{ world, network, run },
    start: async () => void (await world.start()),
    async close() {
      network?.close()
      await world.close()
      await upstreams.close()
      await rm(home, { recursive: true, force: true })
    },
  }
}

const variablesOf = (values: readonly string[]): Variables =>
  Object.fromEntries(NAMES.map((name, n) => [name, values[n] ?? '']))

function heldRun(
  world: World,
  agent: string,
  parts: Pick<HeldRun, 'command' | 'child' | 'holders'>,
): HeldRun {
  const { command, child, holders } = parts
  const get = <T>(path: string) => must<T>(world.server(), undefined, 'GET', path)
  return {
    ...parts,
    async shown() {
      const [run, ...others] = await get<ShownRun[]>(`/v1/admin/runs?agent=${agent}`)
      if (run === undefined) throw new Error('there is no run')
      if (others.length > 0) throw new Error(`there are ${others.length} runs too many`)
      return run
    },
    async refused() {
      for (const holder of holders) holder.insist()
      const all = await Promise.all(
        holders.map(async ({ upstream, refused }) => {
          const kept = sleep(ENDLESS_MS, undefined, { ref: false })
          const at = await Promise.race([refused, kept])
          if (at === undefined) throw new Error(`${upstream} still has the holder after ${ENDLESS_MS} ms`)
          return [upstream, at] as const
        }),
      )
      return Object.fromEntries(all) as Readonly<Record<Upstream, Refused>>
    },
    async clear() {
      await Promise.all(holders.map((holder) => holder.stop()))
      for (const pid of [command.child.pid, child]) end(pid)
      command.child.stdin?.destroy()
      // Sessions of a holder end with their credentials alone.
      if (!world.server().hasEnded())
        await world.server().call(undefined, 'DELETE', `/v1/admin/agents/${agent}`)
      await poll(
        'the command has ended',
        () => command.child.exitCode !== null || command.child.signalCode !== null,
      )
    },
  }
}

function end(pid: number | undefined): void {
  try {
    if (pid !== undefined && pid > 0) process.kill(pid, 'SIGKILL')
  } catch {}
}
