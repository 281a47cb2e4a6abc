import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../cli/run-support.ts'
import { spawnCli, startWorld, type World } from '../cli/support.ts'
import { never, newRequest } from '../contract/open-kind.ts'
import { eventually } from '../support/app.ts'
import { addShop } from '../support/mysql-backend.ts'
import type { MysqlBench } from '../support/mysql-kind.ts'

let world: World
let shop: MysqlBench
beforeAll(async () => {
  world = await startWorld({ jobs: true })
  shop = await addShop(world)
})
afterAll(async () => {
  await world?.close()
  await shop?.close()
})

/** The client reads everything but the user and the database from its environment. */
const CLIENT = 'set -u; exec mariadb --no-defaults -N -u "$MYSQL_USER" "$MYSQL_DATABASE"'
const isThere = async (name: string) =>
  (await shop.sql(`SELECT 1 FROM mysql.user WHERE User = '${name}'`)).length === 1

interface Issued {
  readonly id: string
  readonly expires_at: string
  readonly fields: { readonly username: string; readonly password: string }
}

async function issue(scopes: readonly string[]): Promise<{ issued: Issued; end(): Promise<void> }> {
  const agent = await world.app.newAgent({ scopes: ['shop:*'] })
  const reply = await agent.client.post('/v1/credentials/shop', { ttl: '5m', scopes })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  return {
    issued: reply.body,
    end: async () => {
      const ended = await agent.client.delete(`/api/v1/credentials/${reply.body.id}`)
      expect(ended.body).toMatchObject({ revoked: true, upstream: 'revoked' })
    },
  }
}

/** The program `mariadb` with the credential; `-n` shows each row as it comes. */
function client({ fields }: Issued, sql: string) {
  const child = spawn('mariadb', ['--no-defaults', '-nN', '-u', fields.username, '-e', sql, 'shop'], {
    env: {
      PATH: process.env['PATH'] ?? '',
      MYSQL_HOST: '127.0.0.1',
      MYSQL_TCP_PORT: String(shop.port),
      MYSQL_PWD: fields.password,
    },
  })
  const said = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { child, ended: said.then(([out, complaint, [code]]) => ({ out, complaint, code: code as number })) }
}

const CUT_OFF = /Lost connection|server has gone away|Connection was killed|unexpected eof/

async function sleeping(name: string): Promise<void> {
  const sql = `SELECT 1 FROM information_schema.PROCESSLIST WHERE USER = '${name}' AND INFO LIKE 'SELECT SLEEP%'`
  await eventually(async () => expect(await shop.sql(sql)).toHaveLength(1))
}

test('mariadb under mayfly run needs no mapping; then the account is gone', async () => {
  const { agent, env } = await newRunner(world, ['shop:shop:read'])
  const script = `${CLIENT} -e 'SELECT USER(), id FROM orders'`
  const end = await spawnCli(['run', '--backend', 'shop', '--', 'sh', '-c', script], { env }).ended
  expect(end).toMatchObject({ code: 0, stderr: '' })
  const [user = '', id] = end.stdout.trim().split('\t')
  expect([user, id]).toEqual([expect.stringMatching(/^mf_\w{26}@/), '42'])
  expect(await isThere(user.split('@')[0] ?? '')).toBe(false)
  expect(await recordsOf(world, agent)).toMatchObject([{ backend: 'shop', status: 'revoked' }])
})

test('a credential cannot exceed its scope', async () => {
  const { issued, end } = await issue(['shop.orders:read'])
  expect(await client(issued, 'SELECT id FROM orders').ended).toMatchObject({ code: 0, out: '42\n' })
  for (const beyond of [
    'SELECT * FROM invoices',
    'INSERT INTO orders VALUES (1)',
    'SELECT User FROM mysql.user',
  ]) {
    const refused = await client(issued, beyond).ended
    expect([refused.code, refused.complaint]).toEqual([1, expect.stringContaining('command denied')])
  }
  await end()
})

test('revoked, it is refused, and a statement under way ends within five seconds', async () => {
  const { issued, end } = await issue(['shop:read'])
  const session = client(issued, 'SELECT SLEEP(600)')
  await sleeping(issued.fields.username)
  const before = performance.now()
  await end()
  const { complaint } = await session.ended
  expect(performance.now() - before).toBeLessThan(5_000)
  expect(complaint).toMatch(CUT_OFF)
  expect((await client(issued, 'SELECT 1').ended).complaint).toContain('Access denied')
})

test('expired, it is gone, with its session, by the work of the sweeper', async () => {
  const { issued } = await issue(['shop:read'])
  const session = client(issued, 'SELECT SLEEP(600)')
  await sleeping(issued.fields.username)
  world.app.advancePast(issued.expires_at)
  expect((await session.ended).complaint).toMatch(CUT_OFF)
  await eventually(async () => expect(await isThere(issued.fields.username)).toBe(false))
})

test('revocations of one account that run at once do not end each other', { timeout: 60_000 }, async () => {
  const backend = await shop.open()
  for (let round = 0; round < 20; round += 1) {
    const { handle = {} } = await backend.issue(newRequest(['shop']), never())
    await Promise.all(Array.from({ length: 8 }, () => backend.revoke?.(handle, never())))
    expect(await isThere(String(handle['username']))).toBe(false)
  }
})
