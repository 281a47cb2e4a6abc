import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
  agent = await app.newAgent({ scopes: ['orders'] })
})
afterAll(() => app.close())

const deep = (depth: number) =>
  `{"backend":"orders","metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`

/** Text, or bytes as latin1. `src/http/server/strict-json.test.ts` has every fault of the syntax. */
const HOSTILE: [string, string][] = [
  ['no JSON', 'backend=orders'],
  ['null', 'null'],
  ['a list', '[]'],
  ['text', '"orders"'],
  ['an unknown field', '{"backend":"orders","x":1}'],
  ['a field of another case', '{"backend":"orders","TTL":"5m"}'],
  ['a duplicate key in metadata', '{"backend":"orders","metadata":{"a":1,"a":2}}'],
  ['__proto__ in metadata', '{"backend":"orders","metadata":{"__proto__":{"x":1}}}'],
  ['bad UTF-8', '{"backend":"orders","metadata":{"a":"\xff\xfe"}}'],
  ['depth 9', deep(8)],
  ['depth 5000', deep(5_000)],
  ['a boolean for text', '{"backend":"orders","ttl":true}'],
  ['null for text', '{"backend":"orders","ttl":null}'],
  ['a number for text', '{"backend":5}'],
]

const post = (text: string | Buffer, type = 'application/json', path = '/api/v1/credentials') =>
  app.raw({
    method: 'POST',
    path,
    headers: { authorization: `Bearer ${agent.token}`, 'content-type': type },
    body: typeof text === 'string' ? Buffer.from(text, 'latin1') : text,
  })

describe('a JSON body', () => {
  test.each(HOSTILE)('with %s is invalid_request', async (_what, text) => {
    const before = (await agent.client.get('/v1/active?limit=1000')).body.length
    const reply = await post(text)
    expect([reply.status, JSON.parse(reply.text).error.code]).toEqual([400, 'invalid_request'])
    expect((await agent.client.get('/v1/active?limit=1000')).body.length).toBe(before)
  })

  test('of depth 8 is taken', async () => {
    expect((await post(deep(7))).status).toBe(201)
  })

  test('needs application/json, with or without charset=utf-8', async () => {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'APPLICATION/JSON;charset="UTF-8"',
    ])
      expect((await post('{"backend":"orders"}', type)).status).toBe(201)
    for (const type of ['text/json', 'application/json-patch+json', 'application/json, text/plain', ''])
      expect((await post('{"backend":"orders"}', type)).status).toBe(415)
  })

  test('that is empty counts as absent where optional, and is refused where required', async () => {
    expect((await post('', 'application/json', '/v1/credentials/orders')).status).toBe(200)
    expect((await post('', 'application/json')).status).toBe(400)
  })

  test('of 64 KiB is taken, of one byte more is not', async () => {
    const body = (size: number) => {
      const text = '{"backend":"orders","ttl":"1"}'
      return text + ' '.repeat(size - text.length)
    }
    expect((await post(body(65_536))).status).toBe(400)
    expect((await post(body(65_537))).status).toBe(413)
  })
})
