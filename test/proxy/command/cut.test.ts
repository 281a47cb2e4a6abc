import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { LONG } from '../../support/long.ts'
import { startOwnPostgres } from '../../support/postgres.ts'
import { openRedisBench, type RedisBench } from '../../support/redis-kind.ts'
import { run as program } from '../../support/run-program.ts'
import { holdSessions, type SessionEnd } from '../../support/session-holder.ts'
import { createLogin, openUpstreamDatabase, type UpstreamLogin } from '../../support/upstream-database.ts'
import { environment, type ProxyWorld, startProxyWorld } from './world.ts'

/** Over HTTP, PostgreSQL and Redis, in equal parts. */
const STREAMS = LONG ? 501 : 60
const EACH = STREAMS / 3

let world: ProxyWorld
let postgres: Awaited<ReturnType<typeof openUpstreamDatabase>>
let login: UpstreamLogin
let redis: RedisBench
beforeAll(async () => {
  world = await startProxyWorld()
  const server = await startOwnPostgres()
  const first = await openUpstreamDatabase(server)
  await first.root.query('ALTER SYSTEM SET max_connections = 300')
  await first.root.end()
  await server.restart()
  postgres = await openUpstreamDatabase(server)
  // Otherwise a statement that waits goes on after its connection.
  await postgres.root.query(
    `ALTER DATABASE ${postgres.database.name} SET client_connection_check_interval = '100ms'`,
  )
  login = await createLogin(postgres)
  redis = await openRedisBench()
  await redis.call('SET', 'big', 'x'.repeat(1_000_000))
  await world.app.newBackend({ type: 'postgres', name: 'db', config: postgres.config(login) })
  const { host, port, username, password, local } = redis.settings
  await world.app.newBackend({
    type: 'redis',
    name: 'cache',
    config: { host, port, username, password, local },
  })
}, 120_000)
afterAll(async () => {
  await world?.close()
  await redis?.close()
  await postgres?.close()
})

interface Streams {
  /** Resolves once all have ended. */
  readonly ended: Promise<readonly SessionEnd[]>
  endedSoFar(): number
  /** Each gets another piece. */
  flowing(): Promise<unknown>
}

/** Returns once all are open. */
async function openStreams(url: string, token: string): Promise<Streams> {
  const ends: SessionEnd[] = []
  const opened = await Promise.all(
    Array.from({ length: EACH }, async () => {
      const headers = { authorization: `Bearer ${token}` }
      const outgoing = request(`${url}/v1/stream`, { headers, agent: false }).end()
      const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
      outgoing.on('error', () => undefined)
      let code = ''
      incoming.socket.on('error', (error: NodeJS.ErrnoException) => {
        code = error.code ?? ''
      })
      const ended = new Promise<void>((resolve) =>
        incoming.once('error', () => {
          ends.push({ at: performance.timeOrigin + performance.now(), code })
          resolve()
        }),
      )
      incoming.resume()
      return { incoming, ended }
    }),
  )
  return {
    ended: Promise.all(opened.map(({ ended }) => ended)).then(() => ends),
    endedSoFar: () => ends.length,
    flowing: () => Promise.all(opened.map(({ incoming }) => once(incoming, 'data'))),
  }
}

/** All streams of a new run, open and at work. */
async function openAll() {
  const { agent, env } = await newRunner(world, ['gateway:*', 'db', 'cache'])
  const file = join(world.home, `${agent.name}.env`)
  const backends = ['gateway', 'db', 'cache'].flatMap((name) => ['--backend', name])
  const proxy = spawnCli(['proxy', ...backends, '--write-env', file], { env, cwd: world.home })
  await proxy.said('ready')
  const values = await environment(file)
  const variable = (name: string) => values.get(name) ?? ''
  const db = await holdSessions(variable('DB_URL'), EACH)
  const cache = await holdSessions(variable('REDIS_URL'), EACH)
  const http = await openStreams(variable('MAYFLY_URL_GATEWAY_API'), variable('GATEWAY_TOKEN'))
  await expect.poll(() => world.plain.streams(), { timeout: 30_000 }).toBe(EACH)
  await Promise.all([db.begin(), cache.begin()])
  const [run] = (await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)).body
  return {
    ...{ agent, proxy, db, cache, http, run: String(run.id), variable },
    async [Symbol.asyncDispose]() {
      await Promise.all([db, cache].map((one) => one[Symbol.asyncDispose]()))
      proxy.child.kill('SIGKILL')
      await proxy.ended
    },
  }
}

/** Asks for the end, and says how long after the reply each stream had ended. */
async function cutBy(
  path: string,
  streams: readonly Pick<Streams, 'ended'>[],
  name: string,
): Promise<SessionEnd[]> {
  expect((await world.app.admin('DELETE', path)).status).toBeLessThan(300)
  const replied = performance.timeOrigin + performance.now()
  const ends = (await Promise.all(streams.map(({ ended }) => ended))).flat()
  const times = ends.map(({ at }) => at - replied).sort((one, other) => one - other)
  const [p50, p99] = [0.5, 0.99].map((share) => times[Math.ceil(times.length * share) - 1] ?? 0) as [
    number,
    number,
  ]
  console.info(
    `${name}: ${times.length} streams, p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms after the reply`,
  )
  expect(p99).toBeLessThan(1_000)
  return ends
}

test(`the end of a run cuts ${STREAMS} streams of three kinds within a second`, {
  timeout: 240_000,
}, async () => {
  await using all = await openAll()
  const { agent, run, db, cache, http } = all
  const ends = await cutBy(`/v1/admin/runs/${run}`, [http, db, cache], 'end of the run')
  expect(ends).toHaveLength(STREAMS)
  expect(await all.proxy.ended).toMatchObject({ code: 5 })
  for (const record of await recordsOf(world, agent)) expect(record.status).toBe('revoked')
  expect(world.plain.streams()).toBe(0)
})

/** By the upstreams. */
const SESSIONS = {
  db: async () => {
    const { rows } = await postgres.root.query(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE usename LIKE 'mf\\_%'`,
    )
    return rows[0].n as number
  },
  cache: async () => String(await redis.call('CLIENT', 'LIST')).match(/ user=mf_/g)?.length ?? 0,
  gateway: async () => world.plain.streams(),
}

test('a revocation cuts the streams of its backend alone, whether the upstream ends them or not', {
  timeout: 240_000,
}, async () => {
  await using all = await openAll()
  const { agent, run, db, cache, http, variable } = all
  const records = await recordsOf(world, agent)
  const tokenOf = (backend: string) =>
    `/v1/admin/tokens/${records.find((one) => one.backend === backend)?.id}`
  const live = async () => [await SESSIONS.db(), await SESSIONS.cache(), await SESSIONS.gateway()]
  expect(await live()).toEqual([EACH, EACH, EACH])

  // The server cannot end the sessions of this role: only the proxy cuts them.
  await login.shutOut()
  const ofDatabase = await cutBy(tokenOf('db'), [db], 'revocation of db')
  expect(new Set(ofDatabase.map(({ code }) => code))).toEqual(new Set(['ECONNRESET']))
  expect([cache.endedSoFar(), http.endedSoFar()]).toEqual([0, 0])
  await http.flowing()
  expect((await live()).slice(1)).toEqual([EACH, EACH])
  // The connections of the proxy have gone, too.
  await expect.poll(SESSIONS.db, { timeout: 20_000 }).toBe(0)
  const again = await program(['psql', '-XAtqc', 'SELECT 1', variable('DB_URL')], {
    PATH: process.env['PATH'] ?? '',
  })
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('this run gets no other of db') })
  await login.letIn()

  const ofCache = await cutBy(tokenOf('cache'), [cache], 'revocation of cache')
  expect(ofCache).toHaveLength(EACH)
  expect(http.endedSoFar()).toBe(0)
  await http.flowing()
  expect(await SESSIONS.gateway()).toBe(EACH)

  const ofGateway = await cutBy(`/v1/admin/runs/${run}`, [http], 'end of the run')
  expect(new Set(ofGateway.map(({ code }) => code))).toEqual(new Set(['ECONNRESET']))
  expect(await live()).toEqual([0, 0, 0])
  await expect.poll(() => all.proxy.child.exitCode, { timeout: 30_000 }).toBe(5)
})
