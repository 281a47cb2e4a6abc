import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient, type RunEvent } from '../../src/client/client.ts'
import { startApp, type TestApp } from '../support/app.ts'

let one: TestApp
let two: TestApp
beforeAll(async () => {
  one = await startApp({ dialect: 'postgres' })
  two = await startApp({
    databaseUrl: one.databaseUrl ?? '',
    masterKeyFile: join(one.directory, 'master.key'),
  })
  await one.newBackend({ name: 'orders' })
})
afterAll(async () => {
  await two.close()
  await one.close()
})

async function next(events: AsyncGenerator<RunEvent>) {
  for (;;) {
    const { value, done } = await events.next()
    if (done === true) throw new Error('the stream has ended')
    if (value.kind === 'state') return value
  }
}

test('what one node issues and ends, the streams of the other are told, most of it within 400 ms', async () => {
  const agent = await one.newAgent({ scopes: ['orders'] })
  const run: string = (await agent.client.post('/v1/runs', { heartbeat: '1h' })).body.id
  const client = createClient({ server: two.url, auth: { kind: 'bearer', token: agent.token } })
  const events = client.runs.events(run)
  await next(events)
  const late: number[] = []
  for (let n = 0; n < 15; n += 1) {
    const { id } = (await agent.client.post('/v1/credentials/orders', { run })).body
    while (!(await next(events)).credentials.includes(id));
    const told = next(events).then(({ credentials }) => ({ at: performance.now(), credentials }))
    await agent.client.delete(`/v1/active/${id}`)
    const replied = performance.now()
    const { at, credentials } = await told
    expect(credentials).not.toContain(id)
    late.push(at - replied)
  }
  // Half of them, so that a busy machine fails nothing.
  expect(late.sort((a, b) => a - b)[7]).toBeLessThan(400)
  await agent.client.delete(`/v1/runs/${run}`)
  expect((await next(events)).run).toMatchObject({ state: 'ended', reason: 'completed' })
  expect((await events.next()).done).toBe(true)
})

test('a client that is killed gives its place back', async () => {
  const agent = await one.newAgent({ scopes: ['orders'] })
  const run: string = (await agent.client.post('/v1/runs', { heartbeat: '1h' })).body.id
  const open = () =>
    new Promise<{ status: number | undefined; kill(): void }>((resolve, reject) => {
      const headers = { authorization: `Bearer ${agent.token}` }
      const asked = request(`${one.url}/v1/runs/${run}/events`, { headers }, (reply) => {
        reply.on('error', () => undefined)
        resolve({ status: reply.statusCode, kill: () => reply.socket.resetAndDestroy() })
      })
      asked.on('error', reject).end()
    })
  const streams = await Promise.all(Array.from({ length: 8 }, open))
  expect(streams.map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect((await open()).status).toBe(429)
  for (const { kill } of streams) kill()
  await expect.poll(async () => (await open()).status, { timeout: 20_000 }).toBe(200)
})
