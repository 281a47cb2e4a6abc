import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let agent: NewAgent

beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders', max_ttl: '2h', default_ttl: '20m' })
  agent = await app.newAgent({ scopes: ['orders:read', 'orders:write'] })
})
afterAll(() => app.close())

/** As Go's `http.NewRequest("POST", url, nil)` sends it: an empty body without a type. */
async function postEmpty(query: string) {
  const { status, text } = await app.raw({
    method: 'POST',
    path: `/v1/credentials/orders${query}`,
    headers: {
      authorization: `Bearer ${agent.token}`,
      'content-length': '0',
      'user-agent': 'Go-http-client/1.1',
    },
  })
  return { status, body: JSON.parse(text) }
}

describe('POST /v1/credentials/{backend} with a query in place of a body', () => {
  test('issues with the ttl and the repeated scopes of the query', async () => {
    const reply = await postEmpty('?ttl=10m0s&scope=read&scope=orders:write&read_only=')
    expect(reply.body.error?.message).toBe('"read_only" in the query must be boolean.')
    const issued = await postEmpty('?ttl=10m0s&scope=read&scope=orders:write')
    expect([issued.status, issued.body.ttl]).toEqual([200, '10m'])
    const seen = await agent.client.get(`/api/v1/credentials/${issued.body.id}`)
    expect(seen.body.scopes).toEqual(['read', 'orders:write'])
  })

  test('takes an empty JSON body as no body, and refuses a body beside a query', async () => {
    const json = { 'content-type': 'application/json' }
    const empty = await agent.client.post('/v1/credentials/orders?ttl=5m', '', json)
    expect([empty.status, empty.body.ttl]).toEqual([200, '5m'])
    const before = (await agent.client.get('/v1/active?limit=1000')).body.length
    for (const body of [{}, { ttl: '1m' }]) {
      const both = await agent.client.post('/v1/credentials/orders?ttl=5m', body)
      expect([both.status, both.body.error.message]).toEqual([
        400,
        'Send the options in the body or in the query, not in both.',
      ])
    }
    expect((await agent.client.get('/v1/active?limit=1000')).body).toHaveLength(before)
  })

  test.each([
    '?ttl=0s',
    '?ttl=1.5h',
    '?ttl=5m&ttl=6m',
    '?scopes=read',
    '?ttl=',
    '?scope=a%00b',
    '?metadata=x',
  ])('refuses %s', async (query) => {
    const reply = await postEmpty(query)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['POST', 'repo=o/r&repo=o/s', 'repo'],
    ['GET', 'repo=o/r', 'repo'],
    ['POST', 'read_only=true', 'read_only'],
    ['GET', 'read_only=false', 'read_only'],
  ] as const)('by %s refuses %s by name, because the kind does not know it', async (method, query, name) => {
    const path = `/v1/credentials/orders?${query}`
    const reply = method === 'GET' ? await agent.client.get(path) : await agent.client.post(path)
    expect([reply.status, reply.body.error.message]).toEqual([
      400,
      `"${name}" cannot narrow a credential of kind jwt; leave it out.`,
    ])
  })

  test('repeats the credential of a query under its Idempotency-Key, and refuses another query', async () => {
    const key = { 'idempotency-key': 'by-query' }
    const first = await agent.client.post('/v1/credentials/orders?ttl=10m0s', undefined, key)
    const again = await agent.client.post('/v1/credentials/orders?ttl=10m0s', undefined, key)
    expect([again.status, again.body]).toEqual([200, first.body])
    const other = await agent.client.post('/v1/credentials/orders?ttl=11m', undefined, key)
    expect(other.body.error.code).toBe('conflict')
  })
})

test('every duration of the interface may be written as Go prints it', async () => {
  const backend = await app.local.post('/v1/admin/backends', {
    type: 'jwt',
    name: 'go',
    config: { audience: 'x' },
    default_ttl: '10m0s',
    max_ttl: '1h0m0s',
  })
  expect(backend.body).toMatchObject({ default_ttl: '10m', max_ttl: '1h' })
  const { body: made } = await app.local.post('/v1/admin/agents', {
    name: 'gopher',
    scopes: ['go:*'],
    expires_in: '720h0m0s',
  })
  expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(720 * 3_600_000)
  const gopher = app.as(made.token)
  const issued = await gopher.post('/api/v1/credentials', { backend: 'go', ttl: '30m0s' })
  expect(issued.body.ttl).toBe('30m')
  const asked = await gopher.post('/v1/request', { scopes: ['orders:read'], expires_in: '2h0m0s' })
  expect(asked.body.expires_in).toBe('2h')
  const approved = await app.local.post(`/v1/admin/pending/${asked.body.id}/approve`, {
    expires_in: '1h0m0s',
  })
  expect(approved.body.expires_in).toBe('1h')
  const audit = await app.local.get('/api/v1/audit?since=1h0m0s&agent=gopher')
  expect(audit.body.entries.length).toBeGreaterThan(0)
  expect((await app.local.post('/v1/admin/keys/rotate', { grace: '5m0s' })).status).toBe(200)
})
