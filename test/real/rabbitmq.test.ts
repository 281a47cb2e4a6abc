import { type Channel, type ChannelModel, connect } from 'amqplib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rabbitmq } from '../../src/backends/rabbitmq/kind.ts'
import { newCredentialId, newRequest } from '../contract/open-kind.ts'
import { startPageWorld } from '../docs/backend-page.ts'
import { rabbitmqAt } from '../docs/upstreams/brokers.ts'
import { startAnsweringProxy } from '../support/answering-proxy.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createTestHost } from '../support/host.ts'
import { opensInALoop } from '../support/rabbitmq-holds.ts'
import { type RabbitServer, startRabbit } from '../support/rabbitmq-server.ts'
import { run } from '../support/run-program.ts'

interface Issued {
  id: string
  expires_at: string
  fields: { username: string; password: string; url: string }
}

const signal = () => AbortSignal.timeout(60_000)

let server: RabbitServer
let app: TestApp
let agent: NewAgent

beforeAll(async () => {
  server = await startRabbit()
  await server.api('PUT', '/vhosts/shop')
  await server.api('PUT', '/permissions/shop/guest', { configure: '.*', write: '.*', read: '.*' })
  for (const queue of ['orders.new', 'ordersXnew', 'invoices'])
    await server.api('PUT', `/queues/shop/${queue}`, { durable: true })
  await server.api('PUT', '/exchanges/shop/events', { type: 'topic', durable: true })
  app = await startApp({ jobs: true })
  const config = { ...server.settings, vhosts: ['/', 'shop'] }
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'rabbitmq', name: 'rabbit', config })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  agent = await app.newAgent({ scopes: ['rabbit'] })
})
afterAll(async () => {
  await app.close()
  await server.stop()
})

async function issue(scopes: readonly string[]): Promise<Issued> {
  const reply = await agent.client.post('/v1/credentials/rabbit', { ttl: '5m', scopes })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  return reply.body
}

async function open({ fields }: Issued): Promise<{ connection: ChannelModel; ended: Promise<Error> }> {
  const connection = await connect(fields.url)
  const ended = new Promise<Error>((resolve) => connection.on('close', resolve))
  return { connection, ended }
}

/** Whether RabbitMQ permits it. A refusal closes the channel (AMQP 0-9-1, §1.5.2.5). */
async function permits(connection: ChannelModel, act: (channel: Channel) => Promise<unknown>) {
  const channel = await connection.createChannel()
  const refused = new Promise<Error>((resolve) => channel.on('error', resolve))
  try {
    await act(channel)
    await channel.close()
    return true
  } catch {
    expect((await refused).message).toContain('ACCESS_REFUSED')
    return false
  }
}

const userExists = async ({ fields }: Issued) =>
  (await server.api('GET', `/users/${fields.username}`)).status === 200

describe('a user of RabbitMQ', () => {
  test('may do what its scopes say, in that virtual host, and nothing else', async () => {
    const issued = await issue(['shop:orders.new:read', 'shop:events:write', 'shop:jobs-*'])
    expect(issued.fields.username).toBe(`mf_${issued.id.slice('cred_'.length)}`)
    const { connection } = await open(issued)
    const may = (act: (channel: Channel) => Promise<unknown>) => permits(connection, act)
    expect(await may((channel) => channel.get('orders.new'))).toBe(true)
    expect(await may((channel) => channel.get('ordersXnew'))).toBe(false)
    expect(await may((channel) => channel.get('invoices'))).toBe(false)
    expect(await may((channel) => channel.purgeQueue('orders.new'))).toBe(true)
    expect(await may((channel) => channel.deleteQueue('orders.new'))).toBe(false)
    expect(await may((channel) => channel.assertQueue('jobs-1'))).toBe(true)
    expect(await may((channel) => channel.bindQueue('jobs-1', 'events', '#'))).toBe(false)
    expect(await may((channel) => channel.assertQueue('jobs'))).toBe(false)
    // A name that ends in a line feed is another one, although `$` of PCRE matches before it.
    expect(await may((channel) => channel.purgeQueue('orders.new\n'))).toBe(false)
    await connection.close()
    await expect(connect(issued.fields.url.replace(/shop$/, '%2F'))).rejects.toThrow('ConnectionClose')
  })

  test('publishes with a program that reads the variables', async () => {
    const { fields } = await issue(['shop:amq.default:write', 'shop:orders.new:read'])
    const sh = (script: string) =>
      run(['sh', '-c', script], { PATH: process.env['PATH'] ?? '', AMQP_URL: fields.url })
    const published = await sh('amqp-publish --url="$AMQP_URL" -r orders.new -b hello')
    expect(published).toEqual({ code: 0, stdout: '', stderr: '' })
    const taken = await sh('amqp-get --url="$AMQP_URL" -q orders.new')
    expect(taken).toEqual({ code: 0, stdout: 'hello', stderr: '' })
    expect((await sh('amqp-publish --url="$AMQP_URL" -e events -r a -b hello')).code).not.toBe(0)
  })

  test('without scopes may enter no virtual host', async () => {
    const { host } = createTestHost('rabbit')
    const backend = await rabbitmq.open(server.settings, host)
    const { fields = {}, handle = {} } = await backend.issue({ ...newRequest([]), params: {} }, signal())
    await expect(connect(String(fields['url']))).rejects.toThrow('ConnectionClose')
    await backend.revoke?.(handle, signal())
  })

  test('revoked, it is refused, and its open connection has ended', async () => {
    const issued = await issue(['shop:orders.new:read'])
    const { ended } = await open(issued)
    const since = performance.now()
    const reply = await agent.client.delete(`/api/v1/credentials/${issued.id}`)
    expect(reply.body).toMatchObject({ revoked: true })
    expect((await ended).message).toContain('CONNECTION_FORCED')
    expect(performance.now() - since).toBeLessThan(5_000)
    await expect(connect(issued.fields.url)).rejects.toThrow('ACCESS_REFUSED')
    expect(await userExists(issued)).toBe(false)
  })

  test('expired, it is gone by the work of the sweeper, with its connection', async () => {
    const issued = await issue(['shop:orders.new:read'])
    const { ended } = await open(issued)
    app.advancePast(issued.expires_at)
    expect((await ended).message).toContain('CONNECTION_FORCED')
    await eventually(async () => expect(await userExists(issued)).toBe(false))
  })
})

describe('a backend of RabbitMQ', () => {
  const openWith = (settings: Partial<RabbitServer['settings']>) =>
    rabbitmq.open({ ...server.settings, ...settings }, createTestHost('rabbit').host)

  test('says what its check misses', async () => {
    const fails = async (settings: Partial<RabbitServer['settings']>) =>
      (await openWith(settings)).check(signal()).catch(({ fault, message }) => `${fault}: ${message}`)
    expect(await fails({ password: 'wrong' })).toBe('denied: RabbitMQ refused the login.')
    expect(await fails({ vhosts: ['/', 'none'] })).toContain('no virtual host "none"')
    await server.api('PUT', '/users/monitor', { password: 'a password for it', tags: 'monitoring' })
    expect(await fails({ username: 'monitor', password: 'a password for it' })).toContain('administrator')
    expect(await fails({ url: server.amqpUrl.replace('amqp', 'http') })).toContain('unavailable')
    await expect(openWith({ url: 'http://rabbit.test:15672', local: false })).rejects.toThrow('https')
  })

  test('leaves no user behind where a virtual host has gone', async () => {
    const backend = await openWith({ vhosts: ['/', 'gone'] })
    const request = { ...newRequest(['*:orders:read']), params: {} }
    await expect(backend.issue(request, signal())).rejects.toMatchObject({ fault: 'misconfigured' })
    const name = String(backend.recover?.(request.credentialId)?.['username'])
    expect((await server.api('GET', `/users/${name}`)).status).toBe(404)
    await expect(
      backend.issue({ ...newRequest(['bank:orders:read']), params: {} }, signal()),
    ).rejects.toMatchObject({ fault: 'unsupported' })
  })

  test('ends connections at a release before 3.10.8, which cannot close them by user', async () => {
    await using old = await startAnsweringProxy(server.url, (method, path) => {
      if (!path.startsWith('/api/connections/username/')) return undefined
      return { status: method === 'GET' ? 404 : 405 }
    })
    const backend = await openWith({ url: old.url })
    const issued = await backend.issue({ ...newRequest(['/']), params: {} }, signal())
    await using hold = await opensInALoop(issued)
    await backend.revoke?.(issued.handle ?? {}, signal())
    const path = `/connections/username/${issued.fields?.['username']}`
    expect((await server.api('GET', path)).body).toEqual([])
    await eventually(async () => expect(await hold.works()).toBe(false))
  })

  test('leaves it to the revocation where a permission is answered with a 404 of its own', async () => {
    await using odd = await startAnsweringProxy(server.url, (_, path) =>
      path.startsWith('/api/permissions/') ? { status: 404 } : undefined,
    )
    const backend = await openWith({ url: odd.url })
    const request = { ...newRequest(['/']), params: {} }
    await expect(backend.issue(request, signal())).rejects.toMatchObject({ fault: 'unavailable' })
  })

  test('deletes no user but those of Mayfly', async () => {
    const backend = await openWith({})
    for (const username of ['guest', 'mf_guest', `mf_${newCredentialId().slice(6)}`, '../guest'])
      await expect(backend.revoke?.({ username }, signal())).rejects.toMatchObject({ fault: 'misconfigured' })
  })

  test('replaces its own password, also when that is begun again', async () => {
    await server.api('PUT', '/users/rotated', {
      password: 'the first password',
      tags: 'administrator,policymaker',
    })
    const old = { username: 'rotated', password: 'the first password' }
    const backend = await openWith(old)
    const next = (await backend.rotation?.propose(signal())) ?? {}
    await backend.check(signal())
    await backend.rotation?.adopt(next, signal())
    await backend.rotation?.adopt(next, signal())
    await expect(backend.check(signal())).rejects.toMatchObject({ fault: 'denied' })
    const renewed = await openWith({ ...old, ...next })
    await renewed.rotation?.adopt(next, signal())
    await renewed.check(signal())
    const { body } = await server.api('GET', '/users/rotated')
    expect(body).toMatchObject({ tags: ['administrator', 'policymaker'] })
  })
})

test('the commands of its page work', async () => {
  const world = await startPageWorld()
  await world.runPage('rabbitmq', rabbitmqAt(server)).finally(world.close)
})
