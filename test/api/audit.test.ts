import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ACTIONS } from '../../src/domain/actions.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

interface Entry {
  id: string
  timestamp: string
  action: string
  agent_id: string
  backend: string
  credential_id: string
  outcome: string
  details: Record<string, unknown>
}

describe.each(DIALECTS)('the audit on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  let bob: NewAgent
  let first: { id: string }

  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    await app.newBackend({ name: 'stock' })
    ada = await app.newAgent({ name: 'ada', scopes: ['orders', 'stock'] })
    bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
    const issue = { ttl: '5m', scopes: ['read'], metadata: { ticket: 'T-1' } }
    first = (await ada.client.post('/v1/credentials/orders', issue, { 'user-agent': 'test\u0009agent' })).body
    await ada.client.post('/v1/credentials/stock')
    await bob.client.post('/v1/credentials/orders')
    await ada.client.delete(`/v1/active/${first.id}`)
  })
  afterAll(() => app.close())

  const entries = async (client: { get: NewAgent['client']['get'] }, query = ''): Promise<Entry[]> =>
    (await client.get(`/api/v1/audit${query}`)).body.entries
  const local = () => app.local

  test('gives every entry all documented fields, and no secret', async () => {
    const { status, body, text } = await ada.client.get(`/api/v1/audit?credential=${first.id}`)
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['entries', 'next_cursor'])
    expect(body.entries[1]).toEqual({
      id: expect.stringMatching(/^aud_[0-9a-z]{26}$/),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      action: 'credential.issued',
      outcome: 'ok',
      agent_id: ada.id,
      agent_name: 'ada',
      actor: ada.id,
      backend: 'orders',
      credential_id: first.id,
      run: null,
      scopes: ['read'],
      ttl: '5m',
      ip_address: '127.0.0.1',
      user_agent: 'test\\x09agent',
      auth_method: 'opaque',
      request_id: expect.stringMatching(/^req_/),
      metadata: { ticket: 'T-1' },
      details: { kid: expect.any(String) },
    })
    expect(text).not.toMatch(/ckr_|cks_|eyJ[\w-]+\./)
  })

  test('lists entries newest first', async () => {
    const list = await entries(local())
    expect(list.map(({ id }) => id)).toEqual(
      list
        .map(({ id }) => id)
        .sort()
        .reverse(),
    )
  })

  test('shows an agent only its own entries, whatever it filters by', async () => {
    const own = await entries(bob.client)
    expect(own.length).toBeGreaterThan(0)
    expect(new Set(own.map((entry) => entry.agent_id))).toEqual(new Set([bob.id]))
    for (const query of ['?agent=ada', `?agent=${ada.id}`, `?credential=${first.id}`, '?agent=nobody'])
      expect(await entries(bob.client, query)).toEqual([])
  })

  test('shows all entries to holders of admin:audit:read and the local host', async () => {
    const auditor = await app.newAgent({ scopes: ['admin:audit:read'] })
    for (const client of [auditor.client, local(), app.as(undefined)]) {
      const agents = new Set((await entries(client)).map((entry) => entry.agent_id))
      expect(agents).toContain(ada.id)
      expect(agents).toContain(bob.id)
    }
  })

  test('filters by backend, agent, action and credential, alone and together', async () => {
    const of = async (query: string) => await entries(local(), query)
    expect(new Set((await of('?backend=stock')).map((entry) => entry.backend))).toEqual(new Set(['stock']))
    expect(new Set((await of('?agent=ADA')).map((entry) => entry.agent_id))).toEqual(new Set([ada.id]))
    expect(new Set((await of('?action=credential.issued')).map((entry) => entry.action))).toEqual(
      new Set(['credential.issued']),
    )
    expect((await of(`?credential=${first.id}`)).map((entry) => entry.action)).toEqual([
      'credential.revoked',
      'credential.issued',
    ])
    const both = await of(`?backend=orders&agent=${bob.id}&action=credential.issued`)
    expect(both.map((entry) => [entry.agent_id, entry.backend])).toEqual([[bob.id, 'orders']])
    expect(await of('?backend=nowhere')).toEqual([])
  })

  test('finds the entries of a deleted agent by name until another agent has the name', async () => {
    const gone = await app.newAgent({ name: 'short-lived' })
    expect((await app.admin('DELETE', '/v1/admin/agents/short-lived')).status).toBe(204)
    const named = async () =>
      new Set((await entries(local(), '?agent=Short-Lived')).map((one) => one.agent_id))
    expect(await named()).toEqual(new Set([gone.id]))
    const next = await app.newAgent({ name: 'SHORT-lived' })
    expect(await named()).toEqual(new Set([next.id]))
  })

  test('accepts ISO 8601 or a duration before now in since and until', async () => {
    const all = (await entries(local(), '?limit=1000')).length
    const { timestamp } = (
      await entries(local(), `?credential=${first.id}&action=credential.issued`)
    )[0] as Entry
    const at = encodeURIComponent(timestamp)
    const since = await entries(local(), `?since=${at}&limit=1000`)
    expect(since.some((entry) => entry.timestamp === timestamp)).toBe(true)
    expect(since.every((entry) => entry.timestamp >= timestamp)).toBe(true)
    const until = await entries(local(), `?until=${at}&limit=1000`)
    expect(until.some((entry) => entry.timestamp === timestamp)).toBe(true)
    expect(until.every((entry) => entry.timestamp <= timestamp)).toBe(true)
    expect((await entries(local(), '?since=1h&limit=1000')).length).toBeGreaterThanOrEqual(all)
    expect(await entries(local(), '?until=1h')).toEqual([])
    expect(await entries(local(), '?since=2999-01-01')).toEqual([])
    const zone = `${new Date(Date.parse(timestamp) + 7_200_000).toISOString().slice(0, -1)}%2B02:00`
    expect((await entries(local(), `?until=${zone}&limit=1000`)).length).toBe(until.length)
  })

  test.each([
    'since=yesterday',
    'since=1700000000',
    'since=-5m',
    'until=2026-13-01',
    'since=2026-02-30',
    'since=2026-02-29T12:00:00Z',
    'until=2026-01-01T00:00:00',
    'limit=0',
    'limit=1001',
    'limit=-1',
    'limit=ten',
    'limit=1.5',
    'limit=0x10',
    'limit=1e2',
    'action=nothing.such',
    'credential=cred_x',
    'cursor=nonsense',
    'nonsense=1',
    'backend=a&backend=b',
  ])('?%s is invalid_request', async (query) => {
    for (const path of ['/api/v1/audit', '/v1/admin/audit']) {
      const reply = await local().get(`${path}?${query}`)
      expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    }
  })

  test('pages by 100 entries, or up to 1000, through every entry once', async () => {
    const rows = Array.from(
      { length: 120 },
      () => ({ op: 'insert', table: 'audit', row: entryRow(app, ada) }) as const,
    )
    await app.core.store.commit(rows)
    expect(await entries(ada.client)).toHaveLength(100)
    const all = await entries(ada.client, '?limit=1000')
    expect(all.length).toBeGreaterThan(120)
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const reply = await ada.client.get(`/api/v1/audit?limit=50${cursor === '' ? '' : `&cursor=${cursor}`}`)
      seen.push(...reply.body.entries.map((entry: Entry) => entry.id))
      cursor = reply.body.next_cursor
    }
    expect(seen).toEqual(all.map(({ id }) => id))
  })

  test('gives the administrator a bare array with the same filters, agent_id and Link', async () => {
    const { status, body, headers } = await app.admin('GET', `/v1/admin/audit?agent_id=${bob.id}&limit=1`)
    expect(status).toBe(200)
    expect(body).toHaveLength(1)
    expect(body[0].agent_id).toBe(bob.id)
    const next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? ''
    expect(next).toContain(`agent_id=${bob.id}`)
    const second = await app.admin('GET', next)
    expect(second.body[0].id < body[0].id).toBe(true)
    const issued = await app.admin('GET', '/v1/admin/audit?backend=stock&action=credential.issued')
    expect(issued.body.map((entry: Entry) => entry.backend)).toEqual(['stock'])
    expect((await app.admin('GET', `/v1/admin/audit?agent_id=${bob.id}&agent=ada`)).status).toBe(400)
  })

  test('records denials and failed logins, and a flood of them once', async () => {
    const eve = await app.newAgent({ name: 'eve', scopes: ['orders'] })
    for (let time = 0; time < 20; time += 1) await eve.client.post('/v1/credentials/stock')
    await eve.client.post('/v1/credentials/orders', { ttl: '100d' })
    await eve.client.get('/v1/admin/agents')
    for (let time = 0; time < 5; time += 1) await app.as(`ckr_${'0'.repeat(48)}`).get('/v1/status')
    await eventually(async () => {
      const own = await entries(local(), '?agent=eve')
      expect(
        own.map((entry) => [
          entry.action,
          entry.outcome,
          entry.details?.['code'] ?? entry.details?.['reason'],
        ]),
      ).toEqual(
        expect.arrayContaining([
          ['auth.failed', 'denied', 'insufficient_scope'],
          ['credential.issue_failed', 'denied', 'ttl_exceeded'],
          ['credential.issue_failed', 'denied', 'scope_not_allowed'],
        ]),
      )
      expect(own.filter((entry) => entry.action === 'credential.issue_failed')).toHaveLength(2)
      expect(own.find((entry) => entry.details?.['code'] === 'scope_not_allowed')?.backend).toBe('stock')
      const failed = await entries(local(), '?action=auth.failed')
      expect(failed.filter((entry) => entry.agent_id === null)).toHaveLength(1)
    })
    app.advance(61_000)
    await app.core.denials.flush(app.core.store.now())
    const counted = await entries(local(), '?agent=eve&action=credential.issue_failed')
    expect(counted[0]?.details).toMatchObject({ code: 'scope_not_allowed', repeated: 19 })
  })

  test('records that the local rule was used', async () => {
    await app.as(undefined).get('/v1/admin/agents')
    const [entry] = await entries(local(), '?action=admin.local_access&limit=2')
    expect(entry).toMatchObject({ action: 'admin.local_access' })
    const all = await entries(local(), '?action=admin.local_access&limit=1000')
    expect(
      all.some(
        (one) =>
          one.details?.['route'] === 'GET /v1/admin/agents' &&
          (one as unknown as { auth_method: string }).auth_method === 'loopback',
      ),
    ).toBe(true)
  })

  test('records every documented action', () => {
    const decided =
      'credential.issued credential.revoked credential.expired credential.issue_failed credential.revoke_failed agent.created agent.deleted agent.expired agent.scopes_changed enrollment.requested enrollment.approved enrollment.rejected enrollment.expired token.issued token.refused signing_key.read keys.rotated backend.created backend.changed backend.deleted plugin.reloaded admin.local_access auth.failed'
    expect(ACTIONS).toEqual(expect.arrayContaining(decided.split(' ')))
  })
})

function entryRow(app: TestApp, agent: NewAgent) {
  return {
    id: app.core.ids.body(),
    at: app.core.store.now(),
    action: 'token.issued',
    outcome: 'ok',
    agent_id: agent.id,
    agent_name: agent.name,
    actor: agent.id,
    backend: '',
    credential_id: null,
    scopes: null,
    ttl_ms: null,
    ip_address: null,
    user_agent: null,
    auth_method: null,
    request_id: null,
    metadata: null,
    details: null,
    run_id: null,
  }
}

describe('when the audit cannot be written', () => {
  test('issues nothing and answers 503', async () => {
    const app = await startApp()
    try {
      const backend = await app.newBackend()
      const agent = await app.newAgent({ scopes: [backend] })
      await agent.client.get('/v1/status')
      const { StoreError } = await import('../../src/store/errors.ts')
      const real = app.core.store.commit
      app.core.store.commit = () => Promise.reject(new StoreError('the disk is full'))
      const reply = await agent.client.post(`/v1/credentials/${backend}`)
      expect([reply.status, reply.body.error.code]).toEqual([503, 'audit_unavailable'])
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(reply.text).not.toMatch(/eyJ[\w-]+\./)
      const key = await agent.client.get('/v1/signing-key')
      expect([key.status, key.text.includes('PRIVATE')]).toEqual([503, false])
      const admin = await app.admin('GET', '/v1/admin/agents')
      expect([admin.status, admin.body.error.code]).toEqual([503, 'audit_unavailable'])
      app.core.store.commit = real
      expect((await agent.client.get('/v1/active')).body).toEqual([])
    } finally {
      await app.close()
    }
  })
})
