import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { newPerson } from '../support/person.ts'
import { DIALECTS } from '../support/store.ts'

/** What the console shows of agents, credentials and requests. */
const HOSTILE = '<img src=x onerror=alert(1)>\u202e\u0007\n\u001b[31m "\' {{7*7}}'

describe.each(DIALECTS)('objects on %s', (dialect) => {
  let app: TestApp
  let backend: string
  beforeAll(async () => {
    app = await startApp({ dialect })
    backend = await app.newBackend({ name: 'orders' })
    await app.newBackend({ name: 'stock' })
  })
  afterAll(() => app.close())

  const shown = async (name: string) => (await app.admin('GET', `/v1/admin/agents/${name}`)).body
  const change = (name: string, body: unknown) => app.admin('PATCH', `/v1/admin/agents/${name}`, body)
  const issue = async ({ client }: NewAgent, at = backend) =>
    (await client.post(`/v1/credentials/${at}`)).body.id as string

  describe('the owner of an agent', () => {
    test('is who created it, until another is entered', async () => {
      const parent = await app.newAgent({ scopes: ['admin:agents:*', backend] })
      await parent.client.post('/v1/admin/agents', { name: `by-agent-${dialect}`, scopes: [] })
      expect((await shown(`by-agent-${dialect}`)).owner).toBe(parent.id)
      const alice = await newPerson(app)
      await alice.call('POST', '/v1/admin/agents', { name: 'by-alice', owner: '' })
      expect((await shown('by-alice')).owner).toBe(`operator:${alice.email}`)
      await app.admin('POST', '/v1/admin/agents', { name: 'by-team', owner: 'team-payments' })
      expect((await shown('by-team')).owner).toBe('team-payments')
      expect((await change('by-team', { owner: 'team-stock' })).body.owner).toBe('team-stock')
      expect((await change('by-team', { description: 'x' })).body.owner).toBe('team-stock')
      for (const none of [null, '']) {
        await change('by-team', { owner: 'x' })
        expect((await change('by-team', { owner: none })).body.owner).toBe('local')
      }
      const { body } = await app.admin('GET', '/v1/admin/audit?agent=by-team')
      const owners = body.map(({ details }: { details: { owner?: unknown } }) => details?.owner)
      expect(owners.slice(-3)).toEqual([undefined, 'team-stock', 'team-payments'])
    })

    test('is any text, and no more than text', async () => {
      await app.admin('POST', '/v1/admin/agents', { name: 'odd', owner: HOSTILE })
      expect((await shown('odd')).owner).toBe(HOSTILE)
      const list = (await app.admin('GET', '/v1/admin/agents?limit=1000')).body
      expect(list.find((one: { name: string }) => one.name === 'odd').owner).toBe(HOSTILE)
      for (const owner of ['x'.repeat(1_025), 7, ['x'], 'a\u0000b', '\ud800']) {
        const made = await app.admin('POST', '/v1/admin/agents', { name: 'odder', owner })
        const changed = await change('odd', { owner })
        expect([owner, made.status, changed.status]).toEqual([owner, 400, 400])
      }
      expect((await shown('odd')).owner).toBe(HOSTILE)
    })
  })

  test('an agent shows its living credentials and its last address, alone and in the list', async () => {
    const agent = await app.newAgent({ scopes: ['*'] })
    expect(await shown(agent.name)).toMatchObject({ live: 0, last_used: null, last_used_from: null })
    const [id] = [await issue(agent), await issue(agent)]
    const expected = { live: 2, last_used_from: '127.0.0.1', signing_key_id: agent.signing_key_id }
    expect(await shown(agent.name)).toMatchObject(expected)
    await app.admin('DELETE', `/v1/admin/tokens/${id}`)
    const list = (await app.admin('GET', '/v1/admin/agents?limit=1000')).body
    expect(list.find((one: { id: string }) => one.id === agent.id)).toMatchObject({ ...expected, live: 1 })
    expect((await app.admin('GET', '/v1/admin/backends/stock')).body.live).toBe(0)
    expect((await app.admin('GET', '/v1/admin/backends')).body[0].live).toBeGreaterThanOrEqual(1)
  })

  test('one credential is shown as in the list', async () => {
    const agent = await app.newAgent({ scopes: ['*'] })
    const id = await issue(agent)
    const one = async () => (await app.admin('GET', `/v1/admin/tokens/${id}`)).body
    const listed = async () => (await app.admin('GET', `/v1/admin/tokens?agent=${agent.name}`)).body[0]
    expect(await one()).toEqual(await listed())
    expect(Object.keys(await one())).not.toContain('ended_at')
    await app.admin('DELETE', `/v1/admin/tokens/${id}`)
    expect(await one()).toEqual(await listed())
    expect(await one()).toMatchObject({
      status: 'revoked',
      upstream: 'expires',
      ended_at: expect.any(String),
      end_reason: 'revoked',
    })
    for (const none of [`cred_${'0'.repeat(26)}`, 'revoke', '%00', '..%2f..', `${id}'--`]) {
      const reply = await app.admin('GET', `/v1/admin/tokens/${none}`)
      expect([none, [400, 404].includes(reply.status)]).toEqual([none, true])
    }
    const own = await agent.client.get(`/v1/admin/tokens/${id}`)
    expect([own.status, own.body.error.code]).toEqual([403, 'insufficient_scope'])
  })

  test('lists of what lives page through all, whoever holds it', async () => {
    const [ada, bob] = [await app.newAgent({ scopes: ['*'] }), await app.newAgent({ scopes: ['*'] })]
    const mine: string[] = []
    for (let n = 0; n < 3; n += 1) {
      mine.unshift(await issue(ada, 'stock'))
      await issue(bob)
    }
    const all: string[] = []
    let next: string | undefined = `/v1/admin/tokens?status=active&agent=${ada.name}&backend=stock&limit=1`
    while (next !== undefined) {
      const { body, headers }: Awaited<ReturnType<TestApp['admin']>> = await app.admin('GET', next)
      all.push(...body.map((one: { id: string }) => one.id))
      next = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1]
    }
    expect(all).toEqual(mine)
    for (const query of ['unended=1', 'unended=yes', 'unended=true&cursor=x', 'status=active&cursor=x']) {
      const reply = await app.admin('GET', `/v1/admin/tokens?${query}`)
      expect([query, reply.status, reply.body.error?.code]).toEqual([query, 400, 'invalid_request'])
    }
    expect((await app.admin('GET', '/v1/admin/tokens?unended=true')).body).toEqual([])
    expect((await app.admin('GET', '/v1/admin/tokens?unended=false&limit=1')).body).toHaveLength(1)
  })

  test('all credentials of an agent, or of it at a backend, end at once, and the agent stays', async () => {
    const [ada, bob] = [await app.newAgent({ scopes: ['*'] }), await app.newAgent({ scopes: ['*'] })]
    const [a, b, c] = [await issue(ada), await issue(ada, 'stock'), await issue(bob, 'stock')]
    const statusOf = async (id: string) => (await app.admin('GET', `/v1/admin/tokens/${id}`)).body.status
    const revoke = (body: unknown) => app.admin('POST', '/v1/admin/tokens/revoke', body)
    expect((await revoke({ agent: ada.name, backend: 'stock' })).body).toEqual({ revoked: 1, remaining: 0 })
    expect(await Promise.all([a, b, c].map(statusOf))).toEqual(['active', 'revoked', 'active'])
    expect((await revoke({ agent: ada.id })).body).toEqual({ revoked: 1, remaining: 0 })
    expect(await Promise.all([a, b, c].map(statusOf))).toEqual(['revoked', 'revoked', 'active'])
    expect((await revoke({ backend: 'STOCK' })).body.remaining).toBe(0)
    expect(await statusOf(c)).toBe('revoked')
    expect(await statusOf(await issue(ada))).toBe('active')
    const { body } = await app.admin('GET', `/v1/admin/audit?credential=${a}&action=credential.revoked`)
    expect(body).toMatchObject([{ actor: 'local', agent_id: ada.id, details: { reason: 'revoked' } }])
  })

  test.each([
    [undefined],
    [{}],
    [{ agent: '' }],
    [{ agent: null }],
    [{ agent: ['ada'] }],
    [{ agent: 'x'.repeat(129) }],
    [{ backend: `${'y'.repeat(129)}` }],
    [{ agent: 'ada', all: true }],
    [{ agent: 'a\u0000b' }],
  ])('nothing ends with the body %j', async (body) => {
    const reply = await app.admin('POST', '/v1/admin/tokens/revoke', body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  describe('a pending request', () => {
    const pendingOf = async (id: string, as = app.local) => (await as.get(`/v1/admin/pending/${id}`)).body
    const request = async (agent: NewAgent, scopes: string[], more = {}) =>
      (await agent.client.post('/v1/request', { scopes, ...more })).body.id as string

    test('says what it would add to what the agent has, alone and in the list', async () => {
      const agent = await app.newAgent({ scopes: ['orders:read', 'stock'] })
      const scopes = ['orders:read', 'stock:a:write', 'orders:write', 'nowhere:read', 'ORDERS:read']
      const id = await request(agent, scopes)
      const one = await pendingOf(id)
      expect(one.difference).toEqual({
        added: ['orders:write'],
        present: ['orders:read', 'stock:a:write'],
        impossible: ['nowhere:read', 'ORDERS:read'],
      })
      expect([one.may_approve, one.missing_scopes]).toEqual([true, undefined])
      const list = (await app.admin('GET', '/v1/admin/pending?limit=1000')).body
      expect(list.find((row: { id: string }) => row.id === id)).toEqual(one)
      await app.admin('POST', `/v1/admin/pending/${id}/reject`, { reason: HOSTILE })
      const decided = await pendingOf(id)
      expect(decided).toMatchObject({ status: 'rejected', decision_note: HOSTILE })
      for (const field of ['difference', 'may_approve', 'missing_scopes'])
        expect(Object.keys(decided)).not.toContain(field)
      for (const none of ['enr_01m7y253p8e54bd2j94v1j84fc', 'nothing', '%00', 'x'.repeat(256)]) {
        const reply = await app.admin('GET', `/v1/admin/pending/${none}`)
        expect([none, [400, 404].includes(reply.status)]).toEqual([none, true])
      }
    })

    test('says what the reader lacks to approve it, and asks the rules of an approval', async () => {
      const agent = await app.newAgent({ scopes: ['orders:read'] })
      const id = await request(agent, ['orders:write', 'stock:read'])
      const judge = async (scopes: string[], more = {}) => {
        const reader = await app.newAgent({ scopes, ...more })
        const { may_approve, missing_scopes } = await pendingOf(id, reader.client)
        const reply = await reader.client.post(`/v1/admin/pending/${id}/approve`, {
          scopes: ['orders:write', 'stock:read', 'a b'],
        })
        expect(reply.status).toBeGreaterThanOrEqual(400)
        return [may_approve, missing_scopes]
      }
      expect(await judge(['admin:enrollments:read'])).toEqual([
        false,
        ['admin:enrollments:write', 'orders:write', 'stock:read'],
      ])
      expect(await judge(['admin:enrollments:*', 'orders'])).toEqual([false, ['stock:read']])
      expect(await judge(['admin:enrollments:*', 'orders', 'stock'])).toEqual([true, undefined])
      // It would last longer than the reader.
      expect(await judge(['admin:enrollments:*', '*'], { expires_in: '1h' })).toEqual([false, undefined])
      const denials = async () =>
        (await app.admin('GET', '/v1/admin/audit?action=auth.failed&limit=1000')).body.length
      const narrowed = await app.newAgent({
        scopes: ['admin:enrollments:*', 'orders', 'stock', 'admin:keys:read'],
      })
      const before = await denials()
      const token = await app.accessToken(narrowed, 'admin:enrollments:* orders stock')
      expect(await pendingOf(id, app.as(token))).toMatchObject({ may_approve: false })
      expect(await denials()).toBe(before)
      const weak = await newPerson(app, { scopes: ['admin:enrollments:*'], backend_scopes: ['orders'] })
      const seen = (await weak.call('GET', `/v1/admin/pending/${id}`)).body
      expect([seen.may_approve, seen.missing_scopes]).toEqual([false, ['stock:read']])
    })
  })
})
