import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type MariadbServer, startMariadb } from '../../support/mariadb-server.ts'
import { type liveOf, openProxied, type ProxiedDatabase } from '../../support/proxied-database.ts'
import { openPostgresWorld, type PostgresWorld } from '../../support/proxied-postgres.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { holdSessions } from '../../support/session-holder.ts'

/** A hundred sessions of a process that does not let go of them; from the cut to the moment at which that process knows. */
const SESSIONS = 100
const password = randomBytes(32).toString('base64url')

let postgres: PostgresWorld
let mariadb: MariadbServer
let redis: RedisServer

beforeAll(async () => {
  postgres = await openPostgresWorld()
  await postgres.root.query('ALTER SYSTEM SET max_connections = 200')
  await postgres.root.end()
  await postgres.server.restart()
  mariadb = await startMariadb(['--max-connections=200'])
  await mariadb.sql('CREATE DATABASE app')
  await mariadb.sql(`CREATE USER mf_orders IDENTIFIED BY '${password}'`)
  await mariadb.sql('GRANT ALL ON *.* TO mf_orders')
  redis = await startRedis([`user mf_orders on >${password} ~* &* +@all -@admin`])
  await redis.call('SET', 'big', 'x'.repeat(1_000_000))
})
afterAll(async () => {
  await postgres?.server.stop()
  await mariadb?.stop()
  await redis?.stop()
})

const account = { username: 'mf_orders', password, database: 'app' }
const OPENERS: Record<string, () => Promise<ProxiedDatabase>> = {
  postgres: () => postgres.open(),
  mysql: () => openProxied({ account, use: { protocol: 'mysql', port: mariadb.port } }),
  redis: () =>
    openProxied({ account: { ...account, database: '0' }, use: { protocol: 'redis', port: redis.port } }),
}
const CONNECTIONS: Record<string, () => Promise<number>> = {
  postgres: async () => {
    const { default: pg } = await import('pg')
    const root = new pg.Client({ connectionString: postgres.server.url })
    await root.connect()
    const { rows } = await root.query('SELECT 1 FROM pg_stat_activity WHERE usename = $1', [
      postgres.account.username,
    ])
    await root.end()
    return rows.length
  },
  mysql: async () =>
    (
      await mariadb.sql(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE USER = 'mf_orders' AND INFO IS NULL",
      )
    ).length,
  redis: async () => String(await redis.call('CLIENT', 'LIST')).match(/user=mf_orders/g)?.length ?? 0,
}

test.each(Object.keys(OPENERS))(
  'a holder of %s learns within a second that its sessions are cut',
  async (kind) => {
    await using proxied = (await OPENERS[kind]?.()) as ProxiedDatabase
    const live = proxied.current()
    proxied.give({ ...live, credentialId: 'cred_cut' } as ReturnType<typeof liveOf>)
    await using holder = await holdSessions(String(proxied.fields['url']), SESSIONS)
    // All of the endless replies are under way.
    await delay(500)
    const at = performance.timeOrigin + performance.now()
    expect(proxied.cuts.cut('cred_cut')).toBe(SESSIONS)
    const took = performance.timeOrigin + performance.now() - at
    const times = (await holder.ended).map((time) => time - at).sort((one, other) => one - other)
    console.log(
      `${kind}: cut in ${took.toFixed(1)} ms, seen at p99 after ${times[SESSIONS - 1]?.toFixed(1)} ms`,
    )
    expect(times[SESSIONS - 1]).toBeLessThan(1_000)
    // The server has lost them, too, except for those whose query does not look.
    await expect.poll(() => CONNECTIONS[kind]?.(), { timeout: 20_000 }).toBeLessThanOrEqual(SESSIONS / 2)
    await expect
      .poll(() => proxied.lines.filter(({ decision }) => decision === 'injected').length)
      .toBe(SESSIONS)
  },
)
