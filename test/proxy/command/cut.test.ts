import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { LONG } from '../../support/long.ts'
import { openRedisBench, type RedisBench } from '../../support/redis-kind.ts'
import { holdSessions } from '../../support/session-holder.ts'
import { openUpstreamDatabase } from '../../support/upstream-database.ts'
import { type ProxyWorld, startProxyWorld } from './world.ts'

/** Over HTTP, PostgreSQL and Redis, in equal parts. */
const STREAMS = LONG ? 501 : 60
const EACH = STREAMS / 3

let world: ProxyWorld
let postgres: Awaited<ReturnType<typeof openUpstreamDatabase>>
let redis: RedisBench
beforeAll(async () => {
  world = await startProxyWorld()
  postgres = await openUpstreamDatabase()
  redis = await openRedisBench()
  await redis.call('SET', 'big', 'x'.repeat(1_000_000))
  await world.app.newBackend({ type: 'postgres', name: 'db', config: postgres.config() })
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

/** Values of the environment file. */
async function environment(file: string): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(file, 'utf8')
  return new Map([...text.matchAll(/^(\w+)='?(.*?)'?$/gm)].map(([, name = '', value = '']) => [name, value]))
}

/** Returns when each has ended, once all are open. */
async function openStreams(url: string, token: string): Promise<readonly Promise<number>[]> {
  const ends: Promise<number>[] = []
  await Promise.all(
    Array.from({ length: EACH }, async () => {
      const headers = { authorization: `Bearer ${token}` }
      const outgoing = request(`${url}/v1/stream`, { headers, agent: false }).end()
      const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
      outgoing.on('error', () => undefined)
      incoming.resume()
      ends.push(
        new Promise((resolve) =>
          incoming.once('error', () => resolve(performance.timeOrigin + performance.now())),
        ),
      )
    }),
  )
  return ends
}

test(`one revocation cuts ${STREAMS} streams of three kinds within a second`, {
  timeout: 240_000,
}, async () => {
  const { agent, env } = await newRunner(world, ['gateway:*', 'db', 'cache'])
  const file = join(world.home, 'cut.env')
  const backends = ['gateway', 'db', 'cache'].flatMap((name) => ['--backend', name])
  const proxy = spawnCli(['proxy', ...backends, '--write-env', file], { env, cwd: world.home })
  await proxy.said('ready')
  const values = await environment(file)
  await using db = await holdSessions(values.get('DB_URL') ?? '', EACH)
  await using cache = await holdSessions(values.get('REDIS_URL') ?? '', EACH)
  const http = await openStreams(
    values.get('MAYFLY_URL_GATEWAY_API') ?? '',
    values.get('GATEWAY_TOKEN') ?? '',
  )
  await expect.poll(() => world.plain.streams(), { timeout: 30_000 }).toBe(EACH)

  const { body } = await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)
  expect((await world.app.admin('DELETE', `/v1/admin/runs/${body[0].id}`)).status).toBeLessThan(300)
  const replied = performance.timeOrigin + performance.now()
  const times = [...(await Promise.all(http)), ...(await db.ended), ...(await cache.ended)]
  const sorted = times.map((at) => at - replied).sort((one, other) => one - other)
  expect(sorted).toHaveLength(STREAMS)
  const p99 = sorted[Math.ceil(STREAMS * 0.99) - 1] ?? 0
  console.info(
    `cut of ${STREAMS} streams: p50 ${sorted[STREAMS >> 1]?.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
  )
  expect(p99).toBeLessThan(1_000)
  expect(await proxy.ended).toMatchObject({ code: 5 })
  for (const record of await recordsOf(world, agent)) expect(record.status).toBe('revoked')
  expect(world.plain.streams()).toBe(0)
})
