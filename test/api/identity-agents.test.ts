import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { exchange, post, useKeyless, workload } from '../support/keyless.ts'

describe.each(['sqlite', 'postgres'] as const)('agents without secrets on %s', (dialect) => {
  const world = useKeyless(dialect)
  const { audit, agentNamed, runId } = world
  let app: TestApp
  beforeAll(() => {
    app = world.app()
  })

  test('has no secret to log in with, to rotate or to introspect with', async () => {
    await exchange(app, workload(app, { aud: 'fixed' }))
    const agent = await app.core.store.agents.findByName('fixed')
    for (const secret of ['', `cks_${'0'.repeat(64)}`, agent?.id ?? 'x']) {
      const form = {
        grant_type: 'client_credentials',
        client_id: agent?.clientId ?? '',
        client_secret: secret,
      }
      expect((await post(app, form)).status).toBe(401)
    }
    for (const bearer of [agent?.id ?? '', agent?.bearerHash ?? '', `ckr_${'0'.repeat(48)}`])
      expect((await app.as(bearer).get('/v1/status')).status).toBe(401)
    const rotated = await app.local.post('/v1/admin/agents/fixed/rotate', {})
    expect([rotated.status, rotated.body.error.code]).toEqual([409, 'conflict'])
  })

  test('takes its scopes from its entry alone; the rest an administrator may change', async () => {
    const { body } = await exchange(app, workload(app, { aud: 'fixed' }))
    for (const change of [{ scopes: [] }, { add_scopes: ['stock'] }, { remove_scopes: ['orders'] }]) {
      const reply = await app.local.patch('/v1/admin/agents/fixed', change)
      expect([reply.status, reply.body.error.message]).toEqual([409, expect.stringContaining('"fixed"')])
    }
    const changed = await app.local.patch('/v1/admin/agents/fixed', {
      description: 'nightly',
      expires_in: '3h',
    })
    expect(changed.body).toMatchObject({ description: 'nightly', scopes: ['orders'] })
    const trusted = app.core.identities.trusted()
    const identities = trusted.identities.map((one) =>
      one.name === 'fixed' ? { ...one, scopes: ['orders:read', 'stock'] } : one,
    )
    app.core.identities.setTrusted({ ...trusted, identities })
    await exchange(app, workload(app, { aud: 'fixed' }))
    expect(await agentNamed('fixed')).toMatchObject({
      scopes: ['orders:read', 'stock'],
      expires_at: changed.body.expires_at,
    })
    expect((await audit('agent=fixed&action=agent.scopes_changed'))[0]?.details).toMatchObject({
      added: ['orders:read', 'stock'],
      removed: ['orders'],
    })
    // The token from before has what both say.
    expect((await app.as(body.access_token).get('/v1/status')).body.scopes).toEqual(['orders:read'])
    app.core.identities.setTrusted(trusted)
  })

  test('gets one signing key when it first asks for it', async () => {
    const { body } = await exchange(app, workload(app, { run_id: runId() }))
    const agent = app.as(body.access_token)
    const asked = await Promise.all(
      Array.from({ length: 4 }, () => agent.get('/v1/signing-key?private_key=false')),
    )
    const ids = new Set(asked.map((reply) => reply.body.key_id))
    expect(asked.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(ids.size).toBe(1)
    const name = String(decodeJwt(body.access_token)['agent_name'])
    expect((await agentNamed(name)).signing_key_id).toBe([...ids][0])
    const keys = (await app.local.get('/v1/admin/keys?limit=1000')).body
    expect(keys.filter((key: { name: string }) => key.name === name)).toHaveLength(1)
    expect(await audit(`agent=${name}&action=agent.changed`)).toHaveLength(1)
    // Its token is as good as before.
    expect((await agent.get('/v1/signing-key')).body.private_key).toContain('PRIVATE KEY')
  })

  test('an administrator of tokens introspects its token', async () => {
    const reader = await app.newAgent({ scopes: ['admin:tokens:read'] })
    const { body } = await exchange(app, workload(app, { run_id: runId() }))
    const reply = await fetch(`${app.url}/oauth/introspect`, {
      method: 'POST',
      body: new URLSearchParams({ token: body.access_token, ...reader.oidc }),
    })
    expect(await reply.json()).toMatchObject({ active: true, sub: decodeJwt(body.access_token).sub })
  })

  describe('DELETE /v1/login', () => {
    test('ends the token, and the agent with its last login', async () => {
      const id = runId()
      const one = await exchange(app, workload(app, { run_id: id }))
      const two = await exchange(app, workload(app, { run_id: id }))
      const [first, second] = [app.as(one.body.access_token), app.as(two.body.access_token)]
      expect((await first.delete('/v1/login')).status).toBe(204)
      expect((await first.get('/v1/status')).status).toBe(401)
      expect((await first.delete('/v1/login')).status).toBe(401)
      expect((await second.get('/v1/status')).status).toBe(200)
      const issued = await second.post('/v1/credentials/orders', { scopes: ['orders:read'] })
      expect((await second.delete('/v1/login')).status).toBe(204)
      expect((await second.get('/v1/status')).status).toBe(401)
      expect((await app.local.get(`/v1/admin/agents/ci-${id}`)).status).toBe(404)
      expect((await app.local.get(`/v1/admin/tokens/${issued.body.id}`)).body.status).not.toBe('active')
      const entries = await audit(`agent=ci-${id}`)
      expect(entries.filter(({ action }) => action === 'token.revoked')).toHaveLength(2)
      expect(entries.find(({ action }) => action === 'agent.deleted')?.details).toEqual({
        reason: 'logged_out',
      })
    })

    test('ends the run of the token, with what it issued', async () => {
      const id = runId()
      const main = app.as((await exchange(app, workload(app, { run_id: id }))).body.access_token)
      const run = (await main.post('/v1/runs', {})).body.id
      const { body } = await exchange(app, workload(app, { run_id: id }), { run })
      expect(decodeJwt(body.access_token)['run']).toBe(run)
      const inRun = app.as(body.access_token)
      const issued = await inRun.post('/v1/credentials/orders', { scopes: ['orders:read'] })
      expect((await inRun.delete('/v1/login')).status).toBe(204)
      expect((await main.get(`/v1/runs/${run}`)).body).toMatchObject({ state: 'ended', reason: 'completed' })
      expect((await app.local.get(`/v1/admin/tokens/${issued.body.id}`)).body.status).not.toBe('active')
      expect((await main.get('/v1/status')).status).toBe(200)
    })

    test('a login whose run has ended keeps no agent', async () => {
      const id = runId()
      const main = app.as((await exchange(app, workload(app, { run_id: id }))).body.access_token)
      const run = (await main.post('/v1/runs', {})).body.id
      expect((await exchange(app, workload(app, { run_id: id }), { run })).status).toBe(200)
      expect((await main.delete(`/v1/runs/${run}`)).status).toBe(204)
      expect((await main.delete('/v1/login')).status).toBe(204)
      expect((await app.local.get(`/v1/admin/agents/ci-${id}`)).status).toBe(404)
    })

    test('of all logins at once, one is the last', async () => {
      const id = runId()
      const tokens = []
      for (let count = 0; count < 6; count += 1)
        tokens.push((await exchange(app, workload(app, { run_id: id }))).body.access_token)
      const ended = await Promise.all(tokens.map((token) => app.as(token).delete('/v1/login')))
      // One that comes after the agent has ended finds that its token has, too.
      for (const { status } of ended) expect([204, 401]).toContain(status)
      expect(ended.some(({ status }) => status === 204)).toBe(true)
      expect((await app.local.get(`/v1/admin/agents/ci-${id}`)).status).toBe(404)
    })

    test('is not for an agent with secrets', async () => {
      const agent = await app.newAgent({})
      for (const client of [agent.client, app.as(await app.accessToken(agent))]) {
        const reply = await client.delete('/v1/login')
        expect([reply.status, reply.body.error.code]).toEqual([403, 'not_allowed'])
      }
    })
  })
})
