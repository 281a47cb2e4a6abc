import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nats } from '../../src/backends/nats/kind.ts'
import { newRequest } from '../contract/open-kind.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createTestHost } from '../support/host.ts'
import { type NatsServer, startNats } from '../support/nats-server.ts'

interface Issued {
  id: string
  expires_at: string
  fields: { jwt: string; seed: string; creds: string; url: string; user: string }
}

let server: NatsServer
let app: TestApp
let agent: NewAgent
let everyone: NatsConnection

const open = (creds: Uint8Array | string) =>
  connect({
    servers: server.url,
    reconnect: false,
    authenticator: credsAuthenticator(typeof creds === 'string' ? new TextEncoder().encode(creds) : creds),
  })

beforeAll(async () => {
  server = await startNats()
  everyone = await open(server.superuser)
  app = await startApp({ jobs: true })
  const config = { url: server.url, account: server.account, signing_key: server.signingSeed }
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'nats', name: 'bus', config })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  expect(reply.text).not.toContain(server.signingSeed)
  agent = await app.newAgent({ scopes: ['bus'] })
})
afterAll(async () => {
  await everyone.close()
  await app.close()
  await server.stop()
})

async function issue(scopes: readonly string[], ttl = '5m'): Promise<Issued> {
  const reply = await agent.client.post('/v1/credentials/bus', { ttl, scopes })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  return reply.body
}

/** Whether the server takes it: a refusal is a message that arrives before the answer to the ping behind it. */
async function refusals(connection: NatsConnection, act: () => void): Promise<string[]> {
  const seen: string[] = []
  const status = connection.status()
  const reading = (async () => {
    for await (const event of status) {
      if (event.type === 'error') seen.push(String(event.error.message))
      if (event.type === 'close') return
    }
  })()
  act()
  await connection.flush()
  await connection.close()
  await reading
  return seen
}

async function mayPublish(issued: Issued, subject: string): Promise<boolean> {
  const connection = await open(issued.fields.creds)
  return (await refusals(connection, () => connection.publish(subject, 'x'))).length === 0
}

async function maySubscribe(issued: Issued, subject: string): Promise<boolean> {
  const connection = await open(issued.fields.creds)
  const subscribe = () => connection.subscribe(subject, { callback: () => undefined })
  return (await refusals(connection, subscribe)).length === 0
}

describe('a user of NATS', () => {
  test('publishes and subscribes where its scopes say, and nowhere else', async () => {
    const issued = await issue(['orders.*:pub', 'replies.a:sub', 'jobs'])
    for (const subject of ['orders.new', 'orders.new.eu', 'jobs'])
      expect([subject, await mayPublish(issued, subject)]).toEqual([subject, true])
    for (const subject of ['orders', 'invoices.new', 'replies.a', '$JS.API.INFO', '_INBOX.a'])
      expect([subject, await mayPublish(issued, subject)]).toEqual([subject, false])
    for (const subject of ['replies.a', 'jobs'])
      expect([subject, await maySubscribe(issued, subject)]).toEqual([subject, true])
    for (const subject of ['>', '*', 'replies.*', 'replies.b', 'orders.new', 'jobs.>', '_INBOX.>'])
      expect([subject, await maySubscribe(issued, subject)]).toEqual([subject, false])
  })

  test('receives what others publish', async () => {
    const connection = await open((await issue(['orders.*:sub'])).fields.creds)
    const messages = connection.subscribe('orders.>', { max: 1 })
    await connection.flush()
    everyone.publish('orders.new', 'hello')
    for await (const message of messages) expect(message.string()).toBe('hello')
    await connection.close()
  })

  test('without scopes may do nothing', async () => {
    const { host } = createTestHost('bus')
    const settings = { url: server.url, account: server.account, signing_key: server.signingSeed }
    const backend = await nats.open(settings, host)
    const issued = await backend.issue({ ...newRequest([]), params: {} }, AbortSignal.timeout(10_000))
    expect(await mayPublish(issued as never, 'a')).toBe(false)
    expect(await maySubscribe(issued as never, 'a')).toBe(false)
  })

  test('expired, it is refused, and its open connection has ended', async () => {
    // On a slow machine one may expire before the connection opens.
    const { issued, connection } = await eventually(async () => {
      const issued = await issue(['jobs'], '2s')
      return { issued, connection: await open(issued.fields.creds) }
    })
    const error = await connection.closed()
    expect(String(error)).toMatch(/expired/i)
    const late = Date.now() - Date.parse(issued.expires_at)
    expect(late).toBeGreaterThan(-1_500)
    // Nobody else ends it.
    expect(late).toBeLessThan(20_000)
    // It counts whole seconds: one that begins in the last of them ends with that.
    await eventually(async () => {
      const isOpen = await open(issued.fields.creds).then(
        async (late) => !(await late.closed()) || true,
        () => false,
      )
      expect(isOpen).toBe(false)
    })
  })

  test('expired, none of its connections in a loop works; a consumer that it planted delivers on', async () => {
    // On a slow machine one may expire before it has planted all; the same again changes nothing.
    const { issued, connection } = await eventually(async () => {
      const issued = await issue(['*'], '3s')
      const connection = await open(issued.fields.creds)
      const ask = async (subject: string, body: object) => {
        const reply = await connection.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout: 2_500 })
        expect(reply.json()).not.toHaveProperty('error')
      }
      await ask('STREAM.CREATE.PLANTED', { name: 'PLANTED', subjects: ['secret'], storage: 'memory' })
      const consumer = { durable_name: 'left', deliver_subject: 'planted', ack_policy: 'none' }
      await ask('CONSUMER.DURABLE.CREATE.PLANTED.left', { stream_name: 'PLANTED', config: consumer })
      return { issued, connection }
    })
    await connection.closed()
    // One that begins in the last second ends with it.
    await eventually(async () => {
      const loop = Array.from({ length: 20 }, async () => (await open(issued.fields.creds)).close())
      expect(new Set((await Promise.allSettled(loop)).map(({ status }) => status))).toEqual(
        new Set(['rejected']),
      )
    })
    const narrow = await open((await issue(['planted:sub'])).fields.creds)
    const received = new Promise((resolve) => {
      narrow.subscribe('planted', { max: 1, callback: (_, message) => resolve(message.string()) })
    })
    await narrow.flush()
    everyone.publish('secret', 'of others')
    expect(await received).toBe('of others')
    await everyone.request('$JS.API.STREAM.DELETE.PLANTED')
    await narrow.close()
  })

  test('revoked, it lasts until its expiry, which the reply says', async () => {
    const issued = await issue(['jobs'])
    const { body } = await agent.client.delete(`/api/v1/credentials/${issued.id}`)
    expect(body).toMatchObject({ revoked: true, upstream: 'expires' })
    expect(await mayPublish(issued, 'jobs')).toBe(true)
  })

  test("is signed by the account's own key, where that is configured", async () => {
    const config = { url: server.url, account: server.account, signing_key: server.accountSeed }
    const backend = await nats.open(config, createTestHost('bus').host)
    const issued = await backend.issue({ ...newRequest(['jobs']), params: {} }, AbortSignal.timeout(10_000))
    expect(await mayPublish(issued as never, 'jobs')).toBe(true)
  })
})
