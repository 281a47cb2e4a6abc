import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { formsOf, listenBetween } from '../../support/listening-relay.ts'
import { type MariadbServer, startMariadb } from '../../support/mariadb-server.ts'
import {
  openProxied,
  PLACEHOLDER,
  type ProxiedDatabase,
  type ProxiedOptions,
} from '../../support/proxied-database.ts'
import { openPostgresWorld, type PostgresWorld } from '../../support/proxied-postgres.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { run } from '../../support/run-program.ts'
import { holdSessions } from '../../support/session-holder.ts'

type Kind = 'postgres' | 'mysql' | 'redis'
const KINDS: readonly Kind[] = ['postgres', 'mysql', 'redis']
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

/** `at`: the port of the server; default: its own. */
function open(kind: Kind, parts: Partial<ProxiedOptions> = {}, at?: number): Promise<ProxiedDatabase> {
  if (kind === 'postgres') return postgres.open(at === undefined ? {} : { port: at }, parts)
  const port = at ?? (kind === 'mysql' ? mariadb.port : redis.port)
  const database = kind === 'mysql' ? 'app' : '0'
  return openProxied({ account: { ...account, database }, ...parts, use: { protocol: kind, port } })
}

/** Passes on each byte by itself, in both directions. */
async function relayInBytes(port: number): Promise<{ readonly port: number } & AsyncDisposable> {
  const pass = async (from: Socket, to: Socket) => {
    for await (const chunk of from)
      for (const byte of chunk as Buffer) {
        to.write(Buffer.of(byte))
        await setImmediate()
      }
    to.end()
  }
  const relay = createServer({ noDelay: true, allowHalfOpen: true }, (one) => {
    const other = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const)
      pass(from, to).catch(() => to.destroy())
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    port: (relay.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => void relay.close(),
  }
}

/** A program that logs in at this port, and asks for something. */
function ask(kind: Kind, port: number, { secret = PLACEHOLDER, text = 'SELECT 1' } = {}) {
  const env = { PATH: String(process.env['PATH']) }
  if (kind === 'postgres') {
    const url = `postgresql://a:${secret}@127.0.0.1:${port}/app?sslmode=disable&gssencmode=disable`
    return run(['psql', '-XAtq', url, '-c', text], env)
  }
  if (kind === 'mysql') {
    return run(
      [
        'mariadb',
        '--no-defaults',
        '-N',
        '-h',
        '127.0.0.1',
        '-P',
        `${port}`,
        '-u',
        'a',
        `-p${secret}`,
        '-e',
        text,
      ],
      env,
    )
  }
  const url = `redis://a:${secret}@127.0.0.1:${port}/0`
  return run(
    ['redis-cli', '--no-auth-warning', '-u', url, ...(text === 'SELECT 1' ? ['ECHO', '1'] : text.split(' '))],
    env,
  )
}

const CONNECTIONS: Record<Kind, () => Promise<number>> = {
  postgres: async () => {
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

describe.each(KINDS)('%s', (kind) => {
  test('a child never gets the secret, in no form, whatever it does', async () => {
    const secret = kind === 'postgres' ? postgres.account.password : password
    await using proxied = await open(kind)
    await using relay = await listenBetween(proxied.tcpPort)
    const asked = {
      postgres:
        "SELECT current_user, inet_server_addr(), current_setting('server_version'), (SELECT array_agg(s::text) FROM pg_stat_activity s)",
      mysql: 'SHOW VARIABLES; SHOW PROCESSLIST; SHOW GRANTS; SELECT * FROM mysql.user',
      redis: 'CLIENT INFO',
    }[kind]
    expect((await ask(kind, relay.port)).stdout.trim()).toBe('1')
    await ask(kind, relay.port, { text: asked })
    await ask(kind, relay.port, { secret: 'wrong' })
    await ask(kind, relay.port, { text: 'NONSENSE' })
    proxied.give({ state: 'ended', why: 'it was revoked.' })
    await ask(kind, relay.port)
    const heard = relay.heard()
    expect(heard.length).toBeGreaterThan(500)
    const hash = (name: string, bytes: Buffer | string) => createHash(name).update(bytes).digest()
    const hashes = [hash('sha1', secret), hash('sha256', secret), hash('md5', secret)]
    expect(formsOf(secret, hashes).filter((form) => heard.includes(form))).toEqual([])
    // So that the search can fail.
    expect(
      heard.includes(
        kind === 'postgres' ? postgres.account.username : kind === 'mysql' ? 'mf_orders' : 'NOAUTH',
      ),
    ).toBe(true)
    const said = JSON.stringify([proxied.lines, proxied.warnings, proxied.fields, proxied.variables])
    expect(said).not.toContain(secret)
  })

  test('what arrives in single bytes, from the child or the server, is understood', async () => {
    const server = { postgres: postgres.server.port, mysql: mariadb.port, redis: redis.port }[kind]
    await using slowServer = await relayInBytes(server)
    await using proxied = await open(kind, {}, slowServer.port)
    await using slowChild = await relayInBytes(proxied.tcpPort)
    expect((await ask(kind, slowChild.port)).stdout.trim()).toBe('1')
  })

  test("another credential's placeholder is a misuse, and told", async () => {
    const other = 'mfp-of-another-credential-0123456789'
    const misused: string[] = []
    const held = {
      ...{ name: 'github', backend: 'github', type: 'github', uses: [] },
      placeholders: new Map([['', other]]),
      now: () => ({ state: 'unsure', why: '' }) as const,
    }
    await using proxied = await open(kind, {
      all: () => [held],
      onMisuse: ({ name }) => void misused.push(name),
    })
    const line = proxied.nextLine('misused')
    const { stdout, stderr } = await ask(kind, proxied.tcpPort, { secret: other })
    expect(stdout + stderr).toContain('placeholder of another credential')
    expect(await line).toMatchObject({
      reason: 'placeholder_misused',
      placeholder: 'github',
    })
    expect(misused).toEqual(['github'])
  })

  test('for another user the child is told the port alone', async () => {
    await using proxied = await open(kind, { uids: 'any' })
    expect(proxied.fields).toMatchObject({ host: '127.0.0.1', port: proxied.tcpPort })
    expect(Object.values(proxied.variables).join()).not.toContain(proxied.socket)
    await using strict = await open(kind, { uids: [12_345] })
    const { code } = await ask(kind, strict.tcpPort)
    expect(code).not.toBe(0)
    expect(strict.warnings.join()).toContain('another user')
    expect(strict.lines).toEqual([])
  })

  test('a connection too many is refused with a word of the protocol', async () => {
    await using proxied = await open(kind, { most: 1 })
    const first = await loggedIn(kind, proxied)
    const line = proxied.nextLine('refused')
    const { stdout, stderr } = await ask(kind, proxied.tcpPort)
    expect(stdout + stderr).toContain('too many connections')
    expect((await line).reason).toBe('too_many_connections')
    first.destroy()
    await expect.poll(async () => (await ask(kind, proxied.tcpPort)).stdout.trim()).toBe('1')
  })

  test('an end of the server is an end for the child, and the other way round', async () => {
    await using proxied = await open(kind)
    const child = await loggedIn(kind, proxied)
    await expect.poll(CONNECTIONS[kind]).toBe(1)
    child.destroy()
    await expect.poll(CONNECTIONS[kind]).toBe(0)
    const second = await loggedIn(kind, proxied)
    const closed = once(second, 'close')
    await endAtServer(kind)
    await closed
    await expect.poll(() => proxied.lines.map(({ decision }) => decision)).toEqual(['injected', 'injected'])
  })

  test('closing ends the listeners and every session', async () => {
    const proxied = await open(kind)
    const sessions = await Promise.all(Array.from({ length: 5 }, () => loggedIn(kind, proxied)))
    const closed = sessions.map((socket) => socket.closed || once(socket, 'close'))
    await proxied[Symbol.asyncDispose]()
    await Promise.all(closed)
    await expect(once(connect(proxied.tcpPort, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED')
    await expect(once(connect(proxied.socket), 'connect')).rejects.toThrow('ENOENT')
    expect(proxied.lines).toHaveLength(5)
    await expect.poll(CONNECTIONS[kind]).toBe(0)
  })

  test('a holder of a hundred sessions learns within a second that they are cut', async () => {
    const count = 100
    await using proxied = await open(kind)
    await using holder = await holdSessions(String(proxied.fields['url']), count)
    await holder.begin()
    const at = performance.timeOrigin + performance.now()
    expect(proxied.cuts.cut('cred_1')).toBe(count)
    const took = performance.timeOrigin + performance.now() - at
    const times = (await holder.ended).map((end) => end.at - at).sort((one, other) => one - other)
    console.log(`${kind}: cut in ${took.toFixed(1)} ms, seen at p99 after ${times[count - 2]?.toFixed(1)} ms`)
    expect(times[count - 2]).toBeLessThan(1_000)
    // The server has lost them, too, except for those whose query does not look.
    await expect.poll(CONNECTIONS[kind], { timeout: 20_000 }).toBeLessThanOrEqual(count / 2)
    await expect
      .poll(() => proxied.lines.filter(({ decision }) => decision === 'injected').length)
      .toBe(count)
    expect((await ask(kind, proxied.tcpPort)).stdout).not.toContain('1\n')
  })
})

/** A session as bytes, by the socket. */
async function loggedIn(kind: Kind, proxied: ProxiedDatabase): Promise<Socket> {
  const child = connect(proxied.socket)
  child.on('error', () => undefined)
  const next = async (): Promise<Buffer> => (await once(child, 'data'))[0]
  const text = Buffer.from('user\0a\0database\0app\0\0')
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + text.length)
  head.writeUInt32BE(196_608, 4)
  if (kind === 'postgres') child.write(Buffer.concat([head, text]))
  if (kind === 'redis') child.write('PING\r\n')
  if (kind === 'mysql') {
    // The greeting.
    await next()
    child.write(mysqlLogin())
  }
  const first = await next()
  // AuthenticationOk, OK of packet 2, the reply to PING.
  expect(first.toString('latin1', 0, 1)).toBe({ postgres: 'R', mysql: '\x07', redis: '+' }[kind])
  child.resume()
  return child
}

function mysqlLogin(): Buffer {
  const bytes = Buffer.alloc(36 + 2 + 1)
  bytes.writeUIntLE(35, 0, 3)
  bytes[3] = 1
  bytes.writeUInt32LE(0x0000a200, 4)
  bytes.write('a', 36)
  return bytes
}

async function endAtServer(kind: Kind): Promise<void> {
  if (kind === 'redis') await redis.call('CLIENT', 'KILL', 'USER', 'mf_orders')
  if (kind === 'mysql') {
    const rows = await mariadb.sql(
      "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER = 'mf_orders'",
    )
    for (const { id } of rows) await mariadb.sql(`KILL ${id}`)
  }
  if (kind === 'postgres') {
    const root = new pg.Client({ connectionString: postgres.server.url })
    await root.connect()
    await root.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [
      postgres.account.username,
    ])
    await root.end()
  }
}
