import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../cli/run-support.ts'
import { spawnCli, startWorld, type World } from '../cli/support.ts'
import { eventually } from '../support/app.ts'
import { openRedisBench, type RedisBench } from '../support/redis-kind.ts'

let world: World
let cache: RedisBench
beforeAll(async () => {
  world = await startWorld({ jobs: true })
  cache = await openRedisBench()
  await cache.call('SET', 'shop:1', 'plums')
  const { host, port, username, password, local } = cache.settings
  const config = { host, port, username, password, local }
  const reply = await world.app.admin('POST', '/v1/admin/backends', { type: 'redis', name: 'cache', config })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
})
afterAll(async () => {
  await world?.close()
  await cache?.close()
})

const isThere = async (name: string) => (await cache.call('ACL', 'GETUSER', name)) !== null

interface Issued {
  readonly id: string
  readonly expires_at: string
  readonly fields: { readonly username: string; readonly url: string }
}

async function issue(scopes: readonly string[]): Promise<{ issued: Issued; end(): Promise<void> }> {
  const agent = await world.app.newAgent({ scopes: ['cache'] })
  const reply = await agent.client.post('/v1/credentials/cache', { ttl: '5m', scopes })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  return {
    issued: reply.body,
    end: async () => {
      const ended = await agent.client.delete(`/api/v1/credentials/${reply.body.id}`)
      expect(ended.body).toMatchObject({ revoked: true, upstream: 'revoked' })
    },
  }
}

function client({ fields }: Issued, ...command: string[]) {
  const child = spawn('redis-cli', ['--no-auth-warning', '-u', fields.url, ...command])
  const said = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return said.then(([out, complaint]) => out + complaint)
}

async function waiting(name: string): Promise<void> {
  await eventually(async () =>
    expect(String(await cache.call('CLIENT', 'LIST'))).toMatch(new RegExp(`cmd=blpop user=${name}`)),
  )
}

test('redis-cli under mayfly run needs no mapping; then the user is gone', async () => {
  const { agent, env } = await newRunner(world, ['cache:read:shop:*'])
  const script = 'set -u; exec redis-cli --no-auth-warning -u "$REDIS_URL" GET shop:1'
  const end = await spawnCli(['run', '--backend', 'cache', '--', 'sh', '-c', script], { env }).ended
  expect(end).toMatchObject({ code: 0, stderr: '', stdout: 'plums\n' })
  const [record] = await recordsOf(world, agent)
  expect(record).toMatchObject({ backend: 'cache', status: 'revoked' })
  expect(await isThere(`mf_${record?.id.slice('cred_'.length)}`)).toBe(false)
})

test('a credential cannot exceed its scope', async () => {
  const { issued, end } = await issue(['read:shop:*'])
  expect(await client(issued, 'GET', 'shop:1')).toBe('plums\n')
  for (const beyond of [
    ['GET', 'other'],
    ['SET', 'shop:1', 'x'],
    ['KEYS', '*'],
    ['ACL', 'LIST'],
  ])
    expect(await client(issued, ...beyond)).toContain('NOPERM')
  await end()
})

test('revoked, it is refused, and a command under way ends within five seconds', async () => {
  const { issued, end } = await issue(['write:shop:*'])
  const session = client(issued, 'BLPOP', 'shop:none', '0')
  await waiting(issued.fields.username)
  const before = performance.now()
  await end()
  expect(await session).toContain('Server closed the connection')
  expect(performance.now() - before).toBeLessThan(5_000)
  expect(await client(issued, 'PING')).toContain('WRONGPASS')
})

test('expired, it is gone, with its connection, by the work of the sweeper', async () => {
  const { issued } = await issue(['write:shop:*'])
  const session = client(issued, 'BLPOP', 'shop:none', '0')
  await waiting(issued.fields.username)
  world.app.advancePast(issued.expires_at)
  expect(await session).toContain('Server closed the connection')
  await eventually(async () => expect(await isThere(issued.fields.username)).toBe(false))
})
