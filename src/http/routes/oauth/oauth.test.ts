import { decodeJwt, decodeProtectedHeader } from 'jose'
import { describe, expect, it } from 'vitest'
import { LOCAL } from '../../../../test/support/oauth-app.ts'
import { secretOf } from '../../../../test/support/oauth-calls.ts'
import { ada, app, calls, useOAuthWorld } from '../../../../test/support/oauth-world.ts'
import { deleteAgent } from '../../../core/agents/end-agent.ts'
import { HOUR_MS, MINUTE_MS } from '../../../domain/limits.ts'

useOAuthWorld()

const basicOf = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
})

describe('POST /oauth/token', () => {
  it('gives an RFC 9068 token with all scopes of the agent', async () => {
    const { status, headers, body } = await calls.token(ada)
    expect(status).toBe(200)
    expect(headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' })
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      scope: 'github:o/* db:read tokens',
    })
    const text = String(body['access_token'])
    const [key] = (await app.server.inject('/.well-known/jwks.json')).json().keys
    expect(decodeProtectedHeader(text)).toEqual({ typ: 'at+jwt', alg: 'RS256', kid: key.kid })
    const claims = decodeJwt(text)
    expect(claims).toEqual({
      iss: app.issuer,
      sub: ada.agent.id,
      aud: [app.issuer],
      iat: expect.any(Number),
      exp: claims.iat! + 3600,
      jti: expect.stringMatching(/^[0-9a-z]{26}$/),
      client_id: ada.agent.clientId,
      scope: 'github:o/* db:read tokens',
      scopes: ['github:o/*', 'db:read', 'tokens'],
      agent_id: ada.agent.id,
      agent_name: 'ada',
    })
    expect(await calls.statusWith(text)).toBe(200)
    const entry = (await app.audited('token.issued')).find((row) => row.details?.['jti'] === claims.jti)
    expect(entry).toMatchObject({
      agentId: ada.agent.id,
      actor: ada.agent.id,
      outcome: 'ok',
      authMethod: 'client_secret_post',
      ttlMs: HOUR_MS,
    })
  })

  it('accepts Basic with both parts form-urlencoded', async () => {
    const form = { grant_type: 'client_credentials' }
    const { client_id, client_secret } = secretOf(ada) as { client_id: string; client_secret: string }
    const escaped = (text: string) =>
      [...text].map((c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`).join('')
    expect((await calls.post('/oauth/token', form, basicOf(client_id, client_secret))).status).toBe(200)
    const whole = Buffer.from(`${escaped(client_id)}:${escaped(client_secret)}`).toString('base64')
    expect((await calls.post('/oauth/token', form, { authorization: `basic ${whole}` })).status).toBe(200)
    const same = { ...form, client_id }
    expect((await calls.post('/oauth/token', same, basicOf(client_id, client_secret))).status).toBe(200)
    const wrong = await calls.post('/oauth/token', form, basicOf(client_id, 'cks_no'))
    expect(wrong.status).toBe(401)
    expect(wrong.headers['www-authenticate']).toBe('Basic realm="mayfly"')
  })

  it('narrows to the requested scopes, and never exceeds those of the agent', async () => {
    const narrow = await calls.token(ada, { scope: 'github:o/r:read' })
    expect(narrow.body).toMatchObject({ scope: 'github:o/r:read' })
    expect(decodeJwt(String(narrow.body['access_token']))).toMatchObject({ scopes: ['github:o/r:read'] })
    for (const scope of [
      'github:x/r',
      'github',
      '*',
      'db:read db:write',
      'admin:*',
      'db:read  tokens',
      'a b$',
    ])
      expect((await calls.token(ada, { scope })).body).toMatchObject({ error: 'invalid_scope' })
  })

  it('gives an id token for openid, which authenticates nobody here', async () => {
    const { body } = await calls.token(ada, { scope: 'openid db:read' })
    expect(body).toMatchObject({ scope: 'openid db:read' })
    const text = String(body['id_token'])
    expect(decodeProtectedHeader(text)).toMatchObject({ typ: 'JWT', alg: 'RS256' })
    const claims = decodeJwt(text)
    expect(claims).toEqual({
      iss: app.issuer,
      sub: ada.agent.id,
      aud: [ada.agent.clientId],
      iat: claims.iat,
      exp: claims.iat! + 3600,
      auth_time: claims.iat,
      agent_name: 'ada',
    })
    expect(await calls.statusWith(text)).toBe(401)
    expect(await calls.introspect(ada, text)).toEqual({ active: false })
    expect(decodeJwt(String(body['access_token']))).toMatchObject({ scopes: ['db:read'], scope: 'db:read' })
    const alone = await calls.token(ada, { scope: 'openid' })
    expect(decodeJwt(String(alone.body['access_token']))).toMatchObject({ scopes: [], scope: '' })
    expect(alone.body).toMatchObject({ scope: 'openid' })
  })

  it('gives a token for one allowed audience, which is then not accepted here', async () => {
    for (const field of ['audience', 'resource']) {
      const text = await calls.accessToken(ada, { [field]: 'https://api.example' })
      expect(decodeJwt(text).aud).toEqual(['https://api.example'])
      expect(await calls.statusWith(text)).toBe(401)
      expect(await calls.introspect(ada, text)).toMatchObject({ active: true, aud: ['https://api.example'] })
    }
    expect(decodeJwt(await calls.accessToken(ada, { audience: app.issuer })).aud).toEqual([app.issuer])
    for (const audience of ['https://api.example/', 'https://evil.example', `${app.issuer}/`, '*'])
      expect((await calls.token(ada, { audience })).body).toMatchObject({ error: 'invalid_target' })
    const both = { audience: 'sts.example', resource: 'https://api.example' }
    expect((await calls.token(ada, both)).body).toMatchObject({ error: 'invalid_target' })
  })

  it('gives no token that outlives the agent, or, for other verifiers, a timed scope', async () => {
    const brief = await app.createAgent({ name: 'brief', scopes: ['db'], lifetimeMs: 90_500 })
    const { body } = await calls.token(brief)
    expect(Number(body['expires_in'])).toBeLessThanOrEqual(90)
    expect(Number(body['expires_in'])).toBeGreaterThan(80)
    const amended = await app.createAgent({ name: 'amended', scopes: ['db'] })
    const now = app.core.store.now()
    await app.core.store.commit([
      app.core.store.agents.insertGrant({
        id: 'g1',
        agentId: amended.agent.id,
        scopes: ['extra'],
        createdAt: now,
        expiresAt: now + MINUTE_MS,
      }),
      ...app.core.store.agents.touch(amended.agent.id),
    ])
    expect((await calls.token(amended)).body).toMatchObject({ expires_in: 3600, scope: 'db extra' })
    const foreign = await calls.token(amended, { audience: 'sts.example' })
    expect(Number(foreign.body['expires_in'])).toBeLessThanOrEqual(60)
  })

  it('refuses a token that would be too large to present', async () => {
    const scopes = Array.from({ length: 64 }, (_, index) => `backend${index}:${'x'.repeat(200)}`)
    const many = await app.createAgent({ name: 'many', scopes })
    expect((await calls.token(many)).body).toMatchObject({ error: 'invalid_scope' })
    expect((await calls.token(many, { scope: scopes.slice(0, 2).join(' ') })).status).toBe(200)
  })

  it('does not sign for an agent that was changed or ended meanwhile', async () => {
    const fickle = await app.createAgent({ name: 'fickle', scopes: ['db'] })
    expect((await calls.token(fickle)).status).toBe(200)
    const [during] = await Promise.all([
      calls.token(fickle),
      app.core.store.commit([
        app.core.store.agents.setScopes(fickle.agent.id, ['db:read']),
        ...app.core.store.agents.touch(fickle.agent.id),
      ]),
    ])
    expect(during.status).toBe(200)
    expect((await calls.token(fickle)).body).toMatchObject({ scope: 'db:read' })
    const [last] = await Promise.all([calls.token(fickle), deleteAgent(app.core, LOCAL, 'fickle')])
    if (last.status === 200) expect(await calls.statusWith(String(last.body['access_token']))).toBe(401)
    else expect(last.body).toMatchObject({ error: 'invalid_client' })
    expect((await calls.token(fickle)).status).toBe(401)
  })
})
