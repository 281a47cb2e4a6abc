import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import { LOCAL } from '../../../../test/support/oauth-app.ts'
import { ada, app, calls, useOAuthWorld } from '../../../../test/support/oauth-world.ts'
import { deleteAgent } from '../../../core/agents/end-agent.ts'
import { HOUR_MS, MINUTE_MS } from '../../../domain/limits.ts'

useOAuthWorld()

describe('POST /oauth/introspect', () => {
  it('shows an agent its own tokens, of every type', async () => {
    const text = await calls.accessToken(ada, { scope: 'db:read' })
    expect(await calls.introspect(ada, text)).toEqual({
      active: true,
      token_type: 'Bearer',
      scope: 'db:read',
      client_id: ada.agent.clientId,
      sub: ada.agent.id,
      iss: app.issuer,
      aud: [app.issuer],
      iat: decodeJwt(text).iat,
      exp: decodeJwt(text).exp,
      jti: decodeJwt(text).jti,
      agent_id: ada.agent.id,
      agent_name: 'ada',
    })
    const permanent = await calls.introspect(ada, ada.token)
    expect(permanent).toMatchObject({ active: true, scope: 'github:o/* db:read tokens' })
    expect(permanent).not.toHaveProperty('exp')
    const credential = await calls.issueCredential(ada, 'tokens')
    expect(await calls.introspect(ada, credential.token)).toMatchObject({
      active: true,
      iss: `${app.issuer}/backends/tokens`,
      aud: 'demo',
      jti: credential.id,
      agent_name: 'ada',
    })
  })

  it('shows the tokens of others only to a holder of admin:tokens:read', async () => {
    const eve = await app.createAgent({ name: 'eve', scopes: ['*'] })
    const server = await app.createAgent({ name: 'resource-server', scopes: ['admin:tokens:read'] })
    const credential = await calls.issueCredential(ada, 'tokens')
    for (const text of [await calls.accessToken(ada), ada.token, credential.token]) {
      expect(await calls.introspect(eve, text)).toEqual({ active: false })
      expect(await calls.introspect(server, text)).toMatchObject({ active: true, agent_name: 'ada' })
    }
  })

  it('answers inactive for a token that has ended, was changed, or is no token', async () => {
    const owner = await app.createAgent({ name: 'owner', scopes: ['tokens'], lifetimeMs: HOUR_MS })
    const credential = await calls.issueCredential(owner, 'tokens')
    const text = await calls.accessToken(owner)
    const changed = (one: string) => `${one.slice(0, -2)}${one.endsWith('AA') ? 'BA' : 'AA'}`
    const swapped = credential.token.replace(/\.[^.]+$/, `.${text.split('.')[2]}`)
    const bad = [changed(text), changed(credential.token), swapped, `${text}=`, `${credential.token}=`]
    for (const one of [...bad, 'x', 'a.b.c', `ckr_${'0'.repeat(48)}`, 'x'.repeat(9_000), '{}', '..'])
      expect(await calls.introspect(owner, one)).toEqual({ active: false })
    await app.server.inject({
      method: 'DELETE',
      url: `/api/v1/credentials/${credential.id}`,
      headers: { authorization: `Bearer ${owner.token}` },
    })
    expect(await calls.introspect(owner, credential.token)).toEqual({ active: false })
    const server = await app.createAgent({ name: 'server-2', scopes: ['admin:tokens:read'] })
    const other = await calls.issueCredential(owner, 'tokens')
    expect(await calls.introspect(server, other.token)).toMatchObject({ active: true })
    app.advance(10 * MINUTE_MS + 1)
    expect(await calls.introspect(server, other.token)).toEqual({ active: false })
    expect(await calls.introspect(server, text)).toMatchObject({ active: true })
    await deleteAgent(app.core, LOCAL, 'owner')
    for (const one of [text, owner.token])
      expect(await calls.introspect(server, one)).toEqual({ active: false })
  })

  it('shows the scopes that the agent still holds', async () => {
    const shrinking = await app.createAgent({ name: 'shrinking', scopes: ['db', 'queue'] })
    const text = await calls.accessToken(shrinking)
    await app.core.store.commit([
      app.core.store.agents.setScopes(shrinking.agent.id, ['db:read']),
      ...app.core.store.agents.touch(shrinking.agent.id),
    ])
    expect(await calls.introspect(shrinking, text)).toMatchObject({ active: true, scope: 'db:read' })
  })
})

describe('POST /oauth/revoke', () => {
  it('ends an access token at once, and accepts repetitions', async () => {
    const text = await calls.accessToken(ada)
    const other = await calls.accessToken(ada)
    expect(await calls.statusWith(text)).toBe(200)
    const first = await calls.revoke(ada, text)
    expect([first.status, first.text]).toEqual([200, '{}'])
    expect(await calls.statusWith(text)).toBe(401)
    expect(await calls.introspect(ada, text)).toEqual({ active: false })
    expect((await calls.revoke(ada, text)).status).toBe(200)
    expect(await calls.statusWith(other)).toBe(200)
    const jti = String(decodeJwt(text).jti)
    const entries = (await app.audited('token.revoked')).filter((row) => row.details?.['jti'] === jti)
    expect(entries).toHaveLength(1)
  })

  it('keeps a token revoked within the clock tolerance after its expiry', async () => {
    const text = await calls.accessToken(ada)
    await calls.revoke(ada, text)
    app.advance(HOUR_MS + 2_000)
    await app.core.store.commit([...app.core.store.tokens.tidy(app.core.store.now()), { op: 'invalidate' }])
    expect(await calls.statusWith(text)).toBe(401)
  })

  it('leaves the tokens of others alone and reveals nothing about them', async () => {
    const eve = await app.createAgent({ name: 'eve-2', scopes: ['*', 'admin:*'] })
    const text = await calls.accessToken(ada)
    const credential = await calls.issueCredential(ada, 'tokens')
    for (const one of [text, credential.token, 'unknown', 'a.b.c']) {
      const answer = await calls.revoke(eve, one)
      expect([answer.status, answer.text]).toEqual([200, '{}'])
    }
    expect(await calls.statusWith(text)).toBe(200)
    expect(await calls.introspect(ada, credential.token)).toMatchObject({ active: true })
  })

  it('revokes the credential of a jwt backend', async () => {
    const credential = await calls.issueCredential(ada, 'tokens')
    const forged = credential.token.replace(/\.[^.]+$/, '.AAAA')
    await calls.revoke(ada, forged)
    expect((await app.core.store.credentials.find(credential.id))?.state).toBe('active')
    expect((await calls.revoke(ada, credential.token)).status).toBe(200)
    expect((await app.core.store.credentials.find(credential.id))?.state).toBe('revoked')
    expect((await calls.revoke(ada, credential.token)).status).toBe(200)
    const entries = await app.audited('credential.revoked')
    const entry = entries.find((row) => row.credentialId === credential.id)
    expect(entry).toMatchObject({ authMethod: 'client_secret_post' })
  })

  it('does not pretend to revoke a permanent token', async () => {
    for (const text of [ada.token, `ckr_${'0'.repeat(48)}`]) {
      const { status, body } = await calls.revoke(ada, text)
      expect([status, body['error']]).toEqual([400, 'unsupported_token_type'])
    }
    expect(await calls.statusWith(ada.token)).toBe(200)
  })
})
