import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { longestTurnMs } from '../support/longest-turn.ts'
import { addCredentials } from '../support/many-credentials.ts'

/** Requests that one agent sends at once, each on a connection of its own. */
const TOGETHER = 60
/** The longest turn of the event loop, in ms of CPU: so long does anybody else wait. */
const HOLD_MS = 250

let app: TestApp
let agent: NewAgent
let paths: Record<string, string>
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'tok' })
  agent = await app.newAgent({ scopes: ['tok'] })
  const { body: issued } = await agent.client.post('/api/v1/credentials', { backend: 'tok' })
  const { body: asked } = await agent.client.post('/v1/request', { scopes: ['more'] })
  // As many as it may have, and a page of entries.
  await addCredentials(app.core, 'tok', agent, 9_000)
  for (let n = 0; n < 1_000; n += 50)
    await Promise.all(Array.from({ length: 50 }, () => agent.client.post('/v1/credentials/tok', {})))
  const { body: run } = await agent.client.post('/v1/runs', { heartbeat: '1h' })
  const one = await app.core.store.runs.find(run.id)
  if (one === undefined) throw new Error('no run')
  const more = Array.from({ length: 999 }, () => ({ ...one, id: app.core.ids.id('run') }))
  await app.core.store.commit(more.flatMap(app.core.store.runs.insert))
  paths = {
    'GET /api/v1/credentials/:id': `/api/v1/credentials/${issued.id}`,
    'GET /v1/request/:id': `/v1/request/${asked.id}`,
    'GET /api/v1/backends/:id': '/api/v1/backends/tok',
    'GET /api/v1/audit': '/api/v1/audit?limit=1000',
    'GET /v1/active': '/v1/active?limit=1000',
    'GET /v1/runs': '/v1/runs?limit=1000',
    'GET /v1/signing-key': '/v1/signing-key?private_key=false',
  }
})
afterAll(() => app.close())

async function ask(path: string): Promise<string> {
  const { hostname, port } = new URL(app.url)
  const socket = connect({ port: Number(port), host: hostname })
  let head = ''
  socket.on('data', (chunk) => {
    if (head === '') head = chunk.toString('latin1', 0, 12)
  })
  const auth = `Authorization: Bearer ${agent.token}`
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n${auth}\r\nConnection: close\r\n\r\n`)
  await once(socket, 'close')
  return head
}

it.each([
  'GET /api/v1/credentials/:id',
  'GET /api/v1/backends',
  'GET /v1/admin/me',
  'GET /api/v1/backends/:id',
  'GET /api/v1/audit',
  'GET /v1/status',
  'GET /v1/active',
  'GET /v1/runs',
  'GET /v1/signing-key',
  'GET /v1/request/:id',
])('answers many %s of one agent at once, and holds nobody up', async (route) => {
  const path = paths[route] ?? route.replace('GET ', '')
  // Whatever is compiled or cached with the first one.
  for (let n = 0; n < 3; n += 1) expect(await ask(path)).toBe('HTTP/1.1 200')
  let heads: string[] = []
  const most = await longestTurnMs(async () => {
    heads = await Promise.all(Array.from({ length: TOGETHER }, () => ask(path)))
  })
  expect([...new Set(heads)]).toEqual(['HTTP/1.1 200'])
  expect(most).toBeLessThan(HOLD_MS)
})
