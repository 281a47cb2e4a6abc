import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { freePort } from '../support/free-port.ts'
import { copyBackend } from '../support/many-backends.ts'

let app: TestApp
/** Accepts connections and never says a word. */
const silent = createServer((socket) => sockets.add(socket))
const sockets = new Set<Socket>()
let silentPort: number

const at = (port: number) => ({ host: '127.0.0.1', port, database: 'app', username: 'mayfly', local: true })
const add = async (to: TestApp, name: string, port: number) => {
  const body = { type: 'postgres', name, config: at(port) }
  const reply = await to.admin('POST', '/v1/admin/backends?check=false', body)
  expect(reply.status, reply.text).toBe(200)
  return reply.body
}
const check = (name: string) => app.admin('POST', `/v1/admin/backends/${name}/check`)
const told = (from: TestApp, message: string) =>
  from
    .logged()
    .split('\n')
    .filter((line) => line.includes(message)).length

beforeAll(async () => {
  app = await startApp({ argv: { upstreamTimeout: '1s' } })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  silentPort = (silent.address() as { port: number }).port
  await add(app, 'gone', await freePort())
  await add(app, 'mute', silentPort)
})
afterAll(async () => {
  await app.close()
  for (const socket of sockets) socket.destroy()
  silent.close()
})

describe('POST /v1/admin/backends/:name/check', () => {
  test('answers 200 with the health of an upstream where nothing listens, and records it', async () => {
    expect((await app.admin('GET', '/v1/admin/backends/gone')).body.health).toEqual({
      state: 'unknown',
      last_success: null,
      last_failure: null,
      last_failure_reason: null,
      breakers: { issuing: 'closed', revoking: 'closed' },
      secret_since: expect.any(String),
    })
    const { status, body } = await check('gone')
    expect([status, body]).toEqual([
      200,
      {
        name: 'gone',
        health: {
          state: 'down',
          last_success: null,
          last_failure: expect.any(String),
          last_failure_reason: 'refused',
          last_failure_detail: expect.stringContaining('ECONNREFUSED'),
          breakers: { issuing: 'closed', revoking: 'closed' },
          secret_since: expect.any(String),
        },
      },
    ])
    const shown = await app.admin('GET', '/v1/admin/backends/gone')
    expect(shown.body.health).toEqual(body.health)
    const { body: entries } = await app.admin('GET', '/v1/admin/audit?action=backend.checked')
    expect(entries[0]).toMatchObject({ backend: 'gone', details: { state: 'down', reason: 'refused' } })
  })

  test('is answered by the deadline where the upstream hangs, and asks once for all who ask at once', async () => {
    const before = sockets.size
    const replies = await Promise.all([check('mute'), check('mute'), check('mute')])
    for (const { status, body } of replies)
      expect([status, body.health.state, body.health.last_failure_reason]).toEqual([200, 'down', 'timeout'])
    expect(sockets.size).toBe(before + 1)
  }, 20_000)

  test('shows the words of the upstream only to the local host and holders of admin:*', async () => {
    const some = await app.newAgent({ scopes: ['admin:backends:write', 'admin:backends:read'] })
    const all = await app.newAgent({ scopes: ['admin:*'] })
    const path = '/v1/admin/backends/gone/check'
    const [few, every] = [await some.client.post(path), await all.client.post(path)]
    expect(few.body.health).toMatchObject({ state: 'down', last_failure_reason: 'refused' })
    expect(few.text).not.toContain('ECONNREFUSED')
    expect(every.text).toContain('ECONNREFUSED')
    expect((await some.client.get('/v1/admin/backends')).text).not.toContain('ECONNREFUSED')
  })

  test('is refused to readers, and for a backend that does not exist', async () => {
    const reader = await app.newAgent({ scopes: ['admin:backends:read'] })
    expect((await reader.client.post('/v1/admin/backends/gone/check')).status).toBe(403)
    expect((await check('nobody')).body.error.code).toBe('backend_not_found')
  })

  test('asks although the breaker is open', async () => {
    const agent = await app.newAgent({ scopes: ['gone:*'] })
    const issue = () => agent.client.post('/v1/credentials/gone')
    for (let turn = 0; turn < 8; turn += 1) await issue()
    const shown = () => app.admin('GET', '/v1/admin/backends/gone')
    expect((await shown()).body.health.breakers.issuing).toBe('open')
    expect((await check('gone')).body.health.last_failure_reason).toBe('refused')
    // A backend without an upstream has no failures: it is up.
    const local = await app.newBackend()
    expect((await check(local)).body.health.state).toBe('up')
  })
})

describe('a thousand backends, forty of them down', () => {
  test('stay readable in the list, the metrics, the readiness and the log', async () => {
    const many = await startApp({ argv: { upstreamTimeout: '2s' } })
    try {
      const port = await freePort()
      await many.newBackend({ name: 'up-0' })
      const others = Array.from({ length: 959 }, (_, one) => `up-${one + 1}`)
      await copyBackend(many.core, 'up-0', others)
      for (let one = 0; one < 40; one += 1) await add(many, `down-${one}`, port)
      const agent = await many.newAgent({ scopes: ['down-0:*', 'down-1:*'] })
      const names = Array.from({ length: 40 }, (_, one) => `down-${one}`)
      await Promise.all(names.map((name) => many.admin('POST', `/v1/admin/backends/${name}/check`)))
      for (let turn = 0; turn < 50; turn += 1) await agent.client.post('/v1/credentials/down-0')
      expect(told(many, 'the upstream of the backend is down')).toBe(40)
      expect(told(many, '"level":"warn"')).toBeLessThan(45)

      const list = await many.admin('GET', '/v1/admin/backends?limit=1000')
      const states = list.body.map((one: { health: { state: string } }) => one.health.state)
      expect(states.filter((state: string) => state === 'down')).toHaveLength(40)

      const { body } = await many.admin('GET', '/readyz?verbose')
      expect([body.status, body.backends.up, body.backends.down.length]).toEqual(['ready', 960, 40])
      expect((await many.as(undefined).get('/readyz')).body).not.toHaveProperty('backends')

      let text = ''
      const spent = await cpuMsOf(async () => {
        text = (await many.admin('GET', '/metrics')).text
      })
      expect(spent).toBeLessThan(2_000)
      expect(text.match(/^mayfly_backend_up\{.*\} 1$/gm)).toHaveLength(960)
      expect(text.match(/^mayfly_backend_up\{.*\} 0$/gm)).toHaveLength(40)
      expect(text.match(/^mayfly_backend_down\{backend="down-\d+",reason="refused"\} 1$/gm)).toHaveLength(40)
      expect(text).toMatch(/^mayfly_build_info\{version="[^"]+",store="sqlite",node="v24[^"]*"\} 1$/m)
      expect(text).toMatch(
        /^mayfly_http_requests_total\{method="POST",route="\/v1\/credentials\/:backend",status="5xx"\} 50$/m,
      )
      expect(text).toMatch(
        /^mayfly_http_request_seconds_count\{method="POST",route="\/v1\/credentials\/:backend"\} 50$/m,
      )
    } finally {
      await many.close()
    }
  }, 120_000)
})
