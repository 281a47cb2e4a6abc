import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../../test/support/app.ts'
import { thrown } from '../../test/support/scripted-server.ts'
import { type AccessToken, createClient } from './client.ts'
import { fetchTransport } from './transport.ts'

let app: TestApp
let agent: NewAgent
let kept: AccessToken | undefined
/** Paths, as they were sent. */
let sent: string[]
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  for (const name of ['demo', 'more']) await app.newBackend({ name })
})
afterAll(() => app.close())
beforeEach(async () => {
  agent = await app.newAgent({ scopes: ['demo'] })
  kept = undefined
  sent = []
})

const LOGIN = '/oauth/token'
const open = () =>
  createClient({
    server: app.url,
    transport: (request) => {
      sent.push(new URL(request.url).pathname)
      return fetchTransport(request)
    },
    auth: {
      kind: 'client_secret',
      clientId: agent.oidc.client_id,
      clientSecret: agent.oidc.client_secret,
    },
    tokens: {
      load: async () => kept,
      save: async (token) => {
        kept = token
      },
    },
  })
async function giveMore(): Promise<void> {
  const { id } = (await agent.client.post('/v1/request', { scopes: ['more'] })).body
  expect((await app.admin('POST', `/v1/admin/pending/${id}/approve`)).status).toBe(200)
}

/** As another process has left it. */
async function keepToken(): Promise<void> {
  await open().status()
  sent = []
}

describe('after a request for scopes', () => {
  const STATUS = '/v1/status'
  const approve = (id: string) => app.admin('POST', `/v1/admin/pending/${id}/approve`)

  test('uses the kept token until the request is decided, and a new one from then on', async () => {
    const client = open()
    const { id } = await client.requestScopes({ scopes: ['more'] })
    sent = []
    expect((await client.status()).scopes).toEqual(['demo'])
    expect(sent).toEqual([STATUS, STATUS])
    await approve(id)
    expect((await client.status()).scopes).toEqual(['demo', 'more'])
    expect(sent.slice(2)).toEqual([STATUS, LOGIN, STATUS])
    await client.status()
    expect(sent.slice(5)).toEqual([STATUS])
  })

  test('a process that logs in meanwhile does not forget it', async () => {
    const other = open()
    await other.status()
    const { id } = await open().requestScopes({ scopes: ['more'] })
    expect((await app.admin('POST', '/v1/admin/keys/rotate', {})).status).toBe(200)
    expect((await other.status()).scopes).toEqual(['demo'])
    await approve(id)
    expect((await open().status()).scopes).toEqual(['demo', 'more'])
  })

  test('replaces a token that is no longer valid and repeats the request', async () => {
    const client = open()
    const { id } = await client.requestScopes({ scopes: ['more'] })
    expect((await app.admin('POST', '/v1/admin/keys/rotate', {})).status).toBe(200)
    expect((await client.status()).scopes).toEqual(['demo'])
    await approve(id)
    expect((await client.status()).scopes).toEqual(['demo', 'more'])
  })
})

describe('a call that is refused for scope', () => {
  const ISSUE = '/api/v1/credentials'
  const ADMIN = '/v1/admin/agents/x'

  test('with a kept token is sent once more, with a token of the current scopes', async () => {
    await keepToken()
    await giveMore()
    expect(await open().issue({ backend: 'more' })).toMatchObject({ backend: 'more' })
    expect(sent).toEqual([ISSUE, LOGIN, ISSUE])
    expect(kept?.scope).toBe('demo more')
    await open().issue({ backend: 'more' })
    expect(sent.slice(3)).toEqual([ISSUE])
  })

  test('with a token from an earlier call of the same client, too', async () => {
    const client = open()
    await client.status()
    await giveMore()
    expect((await client.signingKey({ privateKey: true })).private_key).toMatch(/PRIVATE KEY/)
  })

  test('with others at the same time takes one login for all', async () => {
    const client = open()
    await client.status()
    await giveMore()
    const issued = await Promise.all(Array.from({ length: 5 }, () => client.issue({ backend: 'more' })))
    expect(new Set(issued.map(({ id }) => id)).size).toBe(5)
    expect(sent.filter((path) => path === LOGIN)).toHaveLength(2)
    expect((await agent.client.get('/v1/active')).body).toHaveLength(5)
  })

  test('with a fresh token is refused', async () => {
    expect(await thrown(open().issue({ backend: 'more' }))).toMatchObject({ code: 'scope_not_allowed' })
    expect(sent).toEqual([LOGIN, ISSUE])
  })

  test('is refused where the new token has the same scopes', async () => {
    await keepToken()
    const { admin } = open()
    expect(await thrown(admin.agents.show('x'))).toMatchObject({ code: 'insufficient_scope' })
    expect(sent).toEqual([ADMIN, LOGIN])
  })

  test('is refused where the scopes of now do not help', async () => {
    await keepToken()
    await giveMore()
    const { admin } = open()
    expect(await thrown(admin.agents.show('x'))).toMatchObject({ code: 'insufficient_scope' })
    expect(sent).toEqual([ADMIN, LOGIN, ADMIN])
  })
})
