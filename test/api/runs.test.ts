import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SYSTEM } from '../../src/core/caller.ts'
import { endRuns } from '../../src/core/runs/end-run.ts'
import { reapRuns } from '../../src/core/runs/reap-runs.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

const UNKNOWN = 'run_06dzw5k9q2v6x1m8t3c7n4p0hb'

describe.each(['sqlite', 'postgres'] as const)('runs on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  let bob: NewAgent
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    await app.newBackend({ name: 'stock' })
    ada = await app.newAgent({ name: 'ada', scopes: ['orders', 'stock', 'admin:*'] })
    bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
  })
  afterAll(() => app.close())

  const start = async (agent = ada, body: object = {}) => {
    const reply = await agent.client.post('/v1/runs', body)
    expect(reply.status).toBe(200)
    return reply.body as { id: string; dead_at: string }
  }
  const issue = (run: string, agent = ada) => agent.client.post('/v1/credentials/orders', { run })
  const statusOf = async (id: string) => (await app.local.get(`/v1/admin/tokens/${id}`)).body
  const auditOf = async (run: string): Promise<{ action: string; details: { reason?: string } | null }[]> =>
    (await app.local.get(`/v1/admin/audit?run=${run}`)).body
  const tokenFor = async (agent: NewAgent, run: string, scope?: string) => {
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      run,
      ...agent.oidc,
      ...(scope === undefined ? {} : { scope }),
    })
    const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: form })
    return { status: reply.status, body: (await reply.json()) as Record<string, string> }
  }

  test('begins with what was asked for, shows itself, and is recorded', async () => {
    const before = Date.now()
    const { id } = await start(ada, { purpose: 'nightly', heartbeat: '1m30s' })
    const { body: run } = await ada.client.get(`/v1/runs/${id}`)
    expect(run).toMatchObject({
      id,
      agent: { id: ada.id, name: 'ada' },
      purpose: 'nightly',
      heartbeat: '1m30s',
      state: 'running',
      expires_at: null,
      ended_at: null,
      reason: null,
      credentials: { live: 0 },
    })
    expect(Date.parse(run.dead_at) - Date.parse(run.last_beat)).toBe(270_000)
    expect(Date.parse(run.started_at)).toBeGreaterThanOrEqual(before - 1_000)
    expect((await auditOf(id))[0]).toMatchObject({
      action: 'run.started',
      run: id,
      agent_id: ada.id,
      details: { heartbeat: '1m30s', purpose: 'nightly' },
    })
    expect((await start()).id).not.toBe(id)
    const { body: mine } = await ada.client.get('/v1/runs?limit=1')
    expect(mine).toMatchObject([{ heartbeat: '10s', purpose: null }])
    expect((await app.local.get(`/v1/admin/runs/${id}`)).body).toEqual(run)
    const { body: all } = await app.local.get('/v1/admin/runs?agent=ada&state=running')
    expect(all.map((one: { id: string }) => one.id)).toContain(id)
    expect((await app.local.get('/v1/admin/runs?agent=bob')).body).toEqual([])
  })

  test.each([
    ['999ms', 400],
    ['1s', 200],
    ['1h', 200],
    ['1h1ms', 400],
    ['0s', 400],
    ['-1s', 400],
    ['10', 400],
    ['1e9s', 400],
    ['', 400],
    [10, 400],
    [null, 400],
  ])('a heartbeat of %s is %i', async (heartbeat, status) => {
    const reply = await ada.client.post('/v1/runs', { heartbeat })
    expect(reply.status).toBe(status)
    if (status === 400) expect(reply.body.error.code).toBe('invalid_request')
  })

  test('a purpose is hostile text that comes back unchanged, and has a bound', async () => {
    const hostile = '\u001b[2J\u0007<script>alert(1)</script>\r\n\u202e"\'`$(id)`\u{1f600}'
    const { id } = await start(ada, { purpose: hostile })
    expect((await ada.client.get(`/v1/runs/${id}`)).body.purpose).toBe(hostile)
    expect((await auditOf(id))[0]?.details).toMatchObject({ purpose: hostile })
    expect((await ada.client.post('/v1/runs', { purpose: '\u{1f600}'.repeat(500) })).status).toBe(200)
    for (const purpose of ['x'.repeat(501), 'x'.repeat(10_240), 'a\0b', 5, null, ['x']])
      expect((await ada.client.post('/v1/runs', { purpose })).status).toBe(400)
    expect((await ada.client.post('/v1/runs', { name: 'x' })).status).toBe(400)
  })

  test('beats without a body and without an entry, and ends once', async () => {
    const { id, dead_at } = await start(ada, { heartbeat: '1h' })
    const beaten = await ada.client.post(`/v1/runs/${id}/heartbeat`)
    expect(beaten.status).toBe(200)
    expect(Date.parse(beaten.body.dead_at)).toBeGreaterThanOrEqual(Date.parse(dead_at))
    expect((await ada.client.get(`/v1/runs/${id}`)).body.dead_at).toBe(beaten.body.dead_at)
    expect((await ada.client.delete(`/v1/runs/${id}`)).status).toBe(204)
    expect((await ada.client.delete(`/v1/runs/${id}`)).status).toBe(204)
    const { body: ended } = await ada.client.get(`/v1/runs/${id}`)
    expect(ended).toMatchObject({ state: 'ended', reason: 'completed', ended_by: ada.id, dead_at: null })
    expect(ended.last_beat <= ended.ended_at).toBe(true)
    const entries = await auditOf(id)
    expect(entries.map(({ action }) => action)).toEqual(['run.ended', 'run.started'])
    expect(entries[0]?.details).toEqual({ reason: 'completed' })
    const late = await ada.client.post(`/v1/runs/${id}/heartbeat`)
    expect([late.status, late.body.error.code]).toEqual([410, 'gone'])
  })

  test('ends for the reason that its agent gives, of those that are its own to give', async () => {
    const { id } = await start(ada, {})
    for (const reason of ['ended_by', 'expired', ''])
      expect((await ada.client.delete(`/v1/runs/${id}?reason=${reason}`)).status).toBe(400)
    expect((await ada.client.delete(`/v1/runs/${id}?reason=placeholder_misused`)).status).toBe(204)
    expect((await ada.client.delete(`/v1/runs/${id}?reason=completed`)).status).toBe(204)
    const { body: ended } = await ada.client.get(`/v1/runs/${id}`)
    expect(ended).toMatchObject({ state: 'ended', reason: 'placeholder_misused', ended_by: ada.id })
  })

  test('the metrics count what begins, beats and ends', async () => {
    const read = async (): Promise<number[]> => {
      const { text } = await app.local.get('/metrics')
      return [
        'mayfly_runs_started_total',
        'mayfly_run_beats_total',
        'mayfly_runs_ended_total{reason="completed"}',
      ].map((name) =>
        Number(
          text
            .split('\n')
            .find((line) => line.startsWith(`${name} `))
            ?.split(' ')[1] ?? 0,
        ),
      )
    }
    const before = await read()
    const { id } = await start(ada, { heartbeat: '1h' })
    for (let beat = 0; beat < 2; beat += 1) await ada.client.post(`/v1/runs/${id}/heartbeat`)
    await ada.client.delete(`/v1/runs/${id}`)
    await ada.client.delete(`/v1/runs/${id}`)
    expect((await read()).map((count, n) => count - (before[n] ?? 0))).toEqual([1, 2, 1])
  })

  test('what was issued for it ends with it, for every reader at once', async () => {
    const { id } = await start()
    const { body: one } = await issue(id)
    const { body: two } = await ada.client.post('/api/v1/credentials', { backend: 'stock', run: id })
    const { body: three } = await ada.client.get(`/v1/credentials/stock?run=${id}`)
    const { body: other } = await ada.client.post('/v1/credentials/orders')
    expect((await ada.client.get(`/v1/runs/${id}`)).body.credentials).toEqual({ live: 3 })
    expect((await ada.client.get(`/api/v1/credentials/${one.id}`)).body.run).toBe(id)
    const { body: listed } = await app.local.get(`/v1/admin/tokens?run=${id}&backend=stock`)
    expect(listed.map((each: { id: string }) => each.id)).toEqual([three.id, two.id])
    expect((await app.local.get(`/v1/admin/tokens?run=${id}&status=active`)).body).toHaveLength(3)
    expect((await app.local.delete(`/v1/admin/runs/${id}`)).status).toBe(204)
    for (const { id: credential } of [one, two, three])
      expect(await statusOf(credential)).toMatchObject({
        status: 'revoked',
        end_reason: 'run_ended',
        run: id,
      })
    expect(await statusOf(other.id)).toMatchObject({ status: 'active' })
    const { body: shown } = await app.local.get(`/v1/admin/runs/${id}`)
    expect(shown).toMatchObject({ reason: 'ended_by', ended_by: 'local', credentials: { live: 0 } })
    const actions = (await auditOf(id)).map(({ action }) => action)
    expect(actions.filter((action) => action === 'credential.revoked')).toHaveLength(3)
    expect(actions.filter((action) => action === 'credential.issued')).toHaveLength(3)
    const { body: own } = await ada.client.get(`/api/v1/audit?run=${id}`)
    expect(own.entries).toHaveLength(actions.length)
    expect((await bob.client.get(`/api/v1/audit?run=${id}`)).body.entries).toEqual([])
    const { body: again } = await issue(id)
    expect(again.error.code).toBe('gone')
    expect((await tokenFor(ada, id)).body['error']).toBe('invalid_grant')
  })

  test('more credentials than one commit ends are ended at once, too', async () => {
    const { id } = await start()
    const limit = app.core.store.endSlice
    const store = Object.create(app.core.store, { endSlice: { value: 2 } })
    expect(limit).toBeGreaterThan(2)
    const issued: string[] = []
    for (let n = 0; n < 4; n += 1) issued.push((await issue(id)).body.id)
    expect(await endRuns({ ...app.core, store }, SYSTEM, [id], 'ended_by')).toBe(1)
    for (const credential of issued) expect((await statusOf(credential)).status).toBe('revoked')
    const { body: active } = await ada.client.get('/v1/active?limit=1000')
    for (const { id: living } of active) expect(issued).not.toContain(living)
    expect((await issue(id)).body.error.code).toBe('gone')
  })

  test("another agent's run is as unknown as one that never was, everywhere", async () => {
    const { id } = await start()
    const answers = async (run: string) => {
      const token = await tokenFor(bob, run)
      const replies = [
        await bob.client.get(`/v1/runs/${run}`),
        await bob.client.post(`/v1/runs/${run}/heartbeat`),
        await bob.client.delete(`/v1/runs/${run}`),
        await issue(run, bob),
        await bob.client.post('/api/v1/credentials', { backend: 'orders', run }),
      ]
      return [
        [token.status, token.body],
        ...replies.map(({ status, body }) => [status, body.error.code, body.error.message]),
      ]
    }
    const foreign = await answers(id)
    expect(foreign).toEqual(await answers(UNKNOWN))
    expect(foreign).toEqual(await answers('run_x'))
    expect(foreign[1]?.[0]).toBe(404)
    await ada.client.delete(`/v1/runs/${id}`)
    expect(await answers(id)).toEqual(foreign)
    expect((await bob.client.get('/v1/admin/runs')).status).toBe(403)
    expect((await bob.client.delete(`/v1/admin/runs/${id}`)).status).toBe(403)
    expect((await app.local.get(`/v1/admin/runs/${UNKNOWN}`)).status).toBe(404)
    expect((await app.local.delete(`/v1/admin/runs/${UNKNOWN}`)).status).toBe(404)
  })

  test.each(['/v1/admin/tokens', '/v1/admin/audit', '/api/v1/audit'])('%s?run= wants an id', async (path) => {
    expect((await app.local.get(`${path}?run=x`)).status).toBe(400)
    expect((await app.local.get(`${path}?run=${UNKNOWN}`)).status).toBe(200)
  })

  describe('the token of a run', () => {
    test('says so, issues into its run, and dies with it', async () => {
      const { id } = await start()
      const { body } = await tokenFor(ada, id)
      const token = body['access_token'] ?? ''
      expect(decodeJwt(token)['run']).toBe(id)
      const inRun = app.as(token)
      const issued = await inRun.post('/v1/credentials/orders')
      expect(await statusOf(issued.body.id)).toMatchObject({ run: id, status: 'active' })
      const introspect = async () => {
        const form = new URLSearchParams({ token, ...ada.oidc })
        return (await fetch(`${app.url}/oauth/introspect`, { method: 'POST', body: form })).json()
      }
      expect(await introspect()).toMatchObject({ active: true, run: id })
      expect((await inRun.post(`/v1/runs/${id}/heartbeat`)).status).toBe(200)
      expect((await inRun.get('/v1/runs')).body).toMatchObject([{ id }])
      expect((await inRun.delete(`/v1/runs/${id}`)).status).toBe(204)
      expect((await inRun.get('/v1/status')).status).toBe(401)
      expect((await inRun.post('/v1/credentials/orders')).status).toBe(401)
      expect(await introspect()).toEqual({ active: false })
      expect((await statusOf(issued.body.id)).status).toBe('revoked')
    })

    test('makes no run, names, beats and ends no other, and changes nothing that outlasts its run', async () => {
      const { id } = await start()
      const { id: other } = await start()
      const beside = (await ada.client.post('/v1/credentials/orders')).body.id
      const inRun = app.as((await tokenFor(ada, id)).body['access_token'])
      for (const reply of [
        await inRun.get(`/v1/runs/${other}`),
        await inRun.post(`/v1/runs/${other}/heartbeat`),
        await inRun.delete(`/v1/runs/${other}`),
        await inRun.post('/v1/credentials/orders', { run: other }),
        await inRun.delete(`/v1/active/${beside}`),
        await inRun.delete(`/api/v1/credentials/${beside}`),
      ])
        expect(reply.status).toBe(404)
      const WISHES = [
        ['post', '/v1/runs', {}],
        ['post', '/v1/request', { scopes: ['stock:more'] }],
        ['delete', '/v1/self', undefined],
        ['delete', `/v1/admin/runs/${other}`, undefined],
        ['post', '/v1/admin/agents', { name: 'made-in-run', scopes: [], expires_in: '1m' }],
        ['post', '/v1/admin/agents/ada/rotate', {}],
        ['patch', '/v1/admin/agents/ada', { description: 'x' }],
        ['delete', '/v1/admin/agents/bob', undefined],
        ['delete', `/v1/admin/tokens/${beside}`, undefined],
        ['post', '/v1/admin/tokens/revoke', { agent: 'ada' }],
        ['post', '/v1/admin/keys/rotate', {}],
        ['put', '/v1/admin/backends/orders', { description: 'x' }],
        ['post', '/v1/admin/backends/orders/check', {}],
        ['post', '/v1/admin/pending/enr_06dzp2c7h5n1v8k4q6t9x3m0wb/approve', {}],
        ['get', '/v1/signing-key', undefined],
      ] as const
      for (const [method, path, body] of WISHES) {
        const refused =
          method === 'get' || method === 'delete'
            ? await inRun[method](path)
            : await inRun[method](path, body)
        expect([path, refused.status, refused.body.error?.code]).toEqual([path, 403, 'insufficient_scope'])
      }
      expect(await statusOf(beside)).toMatchObject({ status: 'active' })
      expect((await ada.client.get(`/v1/runs/${other}`)).body.state).toBe('running')
      // What ends with the run, and what only reads, it may.
      const own = (await inRun.post('/v1/credentials/orders', { run: id })).body.id
      expect((await inRun.delete(`/v1/active/${own}`)).status).toBe(204)
      expect((await inRun.get('/v1/signing-key?private_key=false')).status).toBe(200)
      expect((await inRun.get('/v1/admin/agents')).status).toBe(200)
    })

    test('a repeated request does not tell it the secret of another run', async () => {
      const { id } = await start()
      const key = { 'idempotency-key': `k-${id}` }
      expect((await ada.client.post('/v1/credentials/orders', undefined, key)).status).toBe(200)
      const inRun = app.as((await tokenFor(ada, id)).body['access_token'])
      expect((await inRun.post('/v1/credentials/orders', undefined, key)).status).toBe(409)
    })
  })

  test('ends with its agent, with its own entry', async () => {
    const eve = await app.newAgent({ name: 'eve', scopes: ['orders'] })
    const { id } = await start(eve)
    const { id: done } = await start(eve)
    await eve.client.delete(`/v1/runs/${done}`)
    const { body: issued } = await issue(id, eve)
    expect((await app.local.delete('/v1/admin/agents/eve')).status).toBe(204)
    expect((await app.local.get(`/v1/admin/runs/${id}`)).body).toMatchObject({
      state: 'ended',
      reason: 'agent_ended',
    })
    expect(await statusOf(issued.id)).toMatchObject({ end_reason: 'agent_deleted' })
    const ends = (await auditOf(id)).filter(({ action }) => action === 'run.ended')
    expect(ends).toMatchObject([{ details: { reason: 'agent_ended' }, actor: 'local' }])
    expect((await auditOf(done)).filter(({ action }) => action === 'run.ended')).toHaveLength(1)
  })

  test('a job ends nothing that beats', async () => {
    const { id } = await start()
    await reapRuns(app.core)
    expect((await ada.client.post(`/v1/runs/${id}/heartbeat`)).status).toBe(200)
    expect((await ada.client.get(`/v1/runs/${id}`)).body.state).toBe('running')
  })
})
