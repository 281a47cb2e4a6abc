import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
})
afterAll(() => app.close())

/** An agent with these scopes permanently and `more` for an hour. */
async function newTimed(scopes: string[], more: string[]): Promise<{ agent: NewAgent; endsAt: number }> {
  const agent = await app.newAgent({ scopes })
  const { id } = (await agent.client.post('/v1/request', { scopes: more, expires_in: '1h' })).body
  const approved = await app.admin('POST', `/v1/admin/pending/${id}/approve`)
  expect(approved.status).toBe(200)
  return { agent, endsAt: Date.parse(approved.body.decided_at) + HOUR_MS }
}

/** A denial is recorded after its reply: poll for it. */
const denialsOf = async ({ name }: NewAgent): Promise<{ details: { reason: string } }[]> =>
  (await app.admin('GET', `/v1/admin/audit?agent=${name}&action=auth.failed`)).body

const endOf = (reply: { body: { expires_at: string } }) => Date.parse(reply.body.expires_at)

describe('a credential', () => {
  test('ends with the extra scopes that allowed it, and no sooner with others', async () => {
    const { agent, endsAt } = await newTimed(['orders:read'], ['orders:write'])
    const tokens = [agent.token, await app.accessToken(agent)]
    for (const client of tokens.map((token) => app.as(token))) {
      const issue = (scopes?: string[], ttl = '20h') =>
        client.post('/v1/credentials/orders', { ttl, ...(scopes && { scopes }) })
      for (const scopes of [['write'], ['orders:write'], ['read', 'write:x'], undefined])
        expect(endOf(await issue(scopes))).toBe(Math.floor(endsAt / 1_000) * 1_000)
      expect(endOf(await issue(['read']))).toBeGreaterThan(endsAt + 18 * HOUR_MS)
      expect(endOf(await issue(['write'], '10m'))).toBeLessThan(endsAt - 49 * MINUTE_MS)
    }
  })

  test('is not shortened by scopes that were added permanently', async () => {
    const { agent, endsAt } = await newTimed([], ['orders:write'])
    const { id } = (await agent.client.post('/v1/request', { scopes: ['orders:write'] })).body
    expect((await app.admin('POST', `/v1/admin/pending/${id}/approve`)).status).toBe(200)
    expect(endOf(await agent.client.post('/v1/credentials/orders', { ttl: '20h' }))).toBeGreaterThan(endsAt)
  })
})

describe('a timed scope', () => {
  const own = ['admin:agents:write', 'admin:enrollments:write', 'stock']

  test('is granted to a new agent for no longer than it is held', async () => {
    const { agent } = await newTimed(own, ['orders'])
    const make = (name: string, more: object) =>
      agent.client.post('/v1/admin/agents', { name, scopes: ['stock', 'orders:read'], ...more })
    for (const more of [{}, { expires_in: '61m' }]) {
      const refused = await make('longer', more)
      expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_scope'])
      expect(refused.body.error.message).toMatch(/until 20\d\d-.*"expires_in"/)
      expect(refused.headers.get('www-authenticate')).toContain('scope="orders:read"')
    }
    expect((await make('shorter', { expires_in: '50m' })).status).toBe(200)
    const stock = { name: 'stockist', scopes: ['stock:read'] }
    expect((await agent.client.post('/v1/admin/agents', stock)).body.expires_at).toBeNull()
  })

  test('does not become permanent by approving one’s own request', async () => {
    const { agent } = await newTimed(own, ['orders'])
    const { id } = (await agent.client.post('/v1/request', { scopes: ['orders'] })).body
    const approve = (body?: object) => agent.client.post(`/v1/admin/pending/${id}/approve`, body)
    expect((await approve()).body.error.code).toBe('insufficient_scope')
    expect((await approve({ expires_in: '30m' })).status).toBe(200)
    await expect
      .poll(() => denialsOf(agent))
      .toMatchObject([{ details: { reason: 'grant_outlives', scope: 'orders' } }])
  })
})

describe('an agent that ends', () => {
  const scopes = ['admin:agents:write', 'admin:enrollments:write', 'orders']
  const newEnding = () => app.newAgent({ scopes, expires_in: '1h' })

  test('creates no agent that ends later, with scopes or without', async () => {
    const ending = await newEnding()
    const make = (name: string, more: object) => ending.client.post('/v1/admin/agents', { name, ...more })
    for (const more of [{}, { scopes: ['orders:read'] }, { scopes: [], expires_in: '61m' }]) {
      const refused = await make('survivor', more)
      expect([refused.status, refused.body.error?.code]).toEqual([403, 'insufficient_scope'])
      expect(refused.body.error.message).toContain(ending.expires_at)
      expect(refused.body.error.message).toContain('"expires_in"')
    }
    expect((await make('younger', { scopes: ['orders:read'], expires_in: '50m' })).status).toBe(200)
    const narrow = app.as(await app.accessToken(ending, 'admin:agents:write'))
    expect((await narrow.post('/v1/admin/agents', { name: 'survivor' })).status).toBe(403)
    const reasons = async () => (await denialsOf(ending)).map(({ details }) => details.reason).slice(0, 2)
    await expect.poll(reasons).toEqual(['narrowed_token', 'grant_outlives'])
    expect((await app.admin('GET', '/v1/admin/agents/survivor')).status).toBe(404)
  })

  test('approves no agent that ends later, and no scopes for longer', async () => {
    const ending = await newEnding()
    const other = await app.newAgent()
    const enrolled = await app.as(undefined).post('/v1/enroll', {
      name: 'enrolled',
      scopes: ['orders:read'],
      public_key: newEnrollee().publicKey,
    })
    const asked = await other.client.post('/v1/request', { scopes: ['orders:read'] })
    for (const { id } of [enrolled.body, asked.body]) {
      const approve = (body?: object) => ending.client.post(`/v1/admin/pending/${id}/approve`, body)
      for (const body of [undefined, { expires_in: '2h' }]) {
        const refused = await approve(body)
        expect([refused.status, refused.body.error?.code]).toEqual([403, 'insufficient_scope'])
      }
      expect((await approve({ expires_in: '50m' })).status).toBe(200)
    }
  })
})

test('shows the administrator all scopes of an agent, extra ones while they last', async () => {
  const own = await startApp()
  try {
    const [one, other] = [await own.newAgent({ scopes: ['db:read'] }), await own.newAgent({ scopes: ['db'] })]
    const wishes = [{ scopes: ['db:write', 'db:read'] }, { scopes: ['git'], expires_in: '1h' }]
    for (const wish of wishes) {
      const { id } = (await one.client.post('/v1/request', wish)).body
      expect((await own.admin('POST', `/v1/admin/pending/${id}/approve`)).status).toBe(200)
    }
    const seen = async () => {
      const listed = (await own.admin('GET', '/v1/admin/agents')).body as { id: string; scopes: string[] }[]
      expect(listed.find(({ id }) => id === other.id)?.scopes).toEqual(['db'])
      const scopes = listed.find(({ id }) => id === one.id)?.scopes
      expect((await own.admin('GET', `/v1/admin/agents/${one.name}`)).body.scopes).toEqual(scopes)
      expect((await one.client.get('/v1/status')).body.scopes).toEqual(scopes)
      return scopes
    }
    expect(await seen()).toEqual(['db:read', 'db:write', 'git'])
    own.advance(HOUR_MS)
    expect(await seen()).toEqual(['db:read', 'db:write'])
  } finally {
    await own.close()
  }
})
