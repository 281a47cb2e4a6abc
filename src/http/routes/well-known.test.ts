import { decodeProtectedHeader } from 'jose'
import { describe, expect, it } from 'vitest'
import { ada, app, calls, useOAuthWorld } from '../../../test/support/oauth-world.ts'
import { HOUR_MS } from '../../domain/limits.ts'

useOAuthWorld()

describe('POST /v1/admin/keys/rotate', () => {
  const rotate = async (body: unknown, bearer: string) =>
    app.server.inject({
      method: 'POST',
      url: '/v1/admin/keys/rotate',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      payload: JSON.stringify(body),
    })
  const kids = async () =>
    (await app.server.inject('/.well-known/jwks.json')).json().keys.map((key: { kid: string }) => key.kid)

  it('ends every token at once, or lets the old key verify for the grace period', async () => {
    const admin = await app.createAgent({ name: 'keeper', scopes: ['admin:keys:write'] })
    const before = await calls.accessToken(ada)
    const [old] = await kids()
    const graced = await rotate({ grace: '1h' }, admin.token)
    expect(graced.statusCode).toBe(200)
    expect(await kids()).toEqual([graced.json().key_id, old])
    const after = await calls.accessToken(ada)
    expect(decodeProtectedHeader(after).kid).toBe(graced.json().key_id)
    expect([await calls.statusWith(before), await calls.statusWith(after)]).toEqual([200, 200])
    app.advance(HOUR_MS - 5_000)
    expect(await calls.statusWith(after)).toBe(200)
    const late = await calls.accessToken(ada)
    app.advance(5_001)
    expect(await kids()).toEqual([graced.json().key_id])
    expect([await calls.statusWith(before), await calls.statusWith(late)]).toEqual([401, 200])
    const hard = await rotate({}, admin.token)
    expect(hard.json()).toEqual({ key_id: expect.any(String), previous_valid_until: null })
    expect(await kids()).toEqual([hard.json().key_id])
    expect(await calls.statusWith(late)).toBe(401)
    expect(await calls.introspect(ada, late)).toEqual({ active: false })
    expect(await calls.statusWith(await calls.accessToken(ada))).toBe(200)
    expect((await app.audited('keys.rotated'))[0]).toMatchObject({ actor: admin.agent.id })
  })

  it('requires its scope and a valid duration', async () => {
    const reader = await app.createAgent({ name: 'key-reader', scopes: ['admin:keys:read'] })
    expect((await rotate({}, reader.token)).statusCode).toBe(403)
    const admin = await app.createAgent({ name: 'keeper-2', scopes: ['admin:*'] })
    for (const body of [{ grace: '-1h' }, { grace: 'soon' }, { grace: 1 }, { grace: '0s' }, { other: 1 }])
      expect((await rotate(body, admin.token)).statusCode).toBe(400)
  })
})

describe('discovery and keys', () => {
  it('lists the served endpoints and nothing else', async () => {
    const one = await app.server.inject('/.well-known/openid-configuration')
    const two = await app.server.inject('/.well-known/oauth-authorization-server')
    expect(one.headers['cache-control']).toBe('public, max-age=300')
    expect(two.body).toBe(one.body)
    const document = one.json()
    expect(document).toMatchObject({
      issuer: app.issuer,
      grant_types_supported: [
        'client_credentials',
        'urn:ietf:params:oauth:grant-type:token-exchange',
        'urn:ietf:params:oauth:grant-type:jwt-bearer',
        'authorization_code',
        'urn:ietf:params:oauth:grant-type:device_code',
      ],
      response_types_supported: ['code', 'id_token'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      // A page of the console, at the name under which passkeys work.
      authorization_endpoint: `${app.issuer.replace('127.0.0.1', 'localhost')}/console/allow`,
      token_endpoint_auth_methods_supported: [
        'client_secret_post',
        'client_secret_basic',
        'private_key_jwt',
        'none',
      ],
      subject_types_supported: ['public'],
    })
    const routes = Object.entries<unknown>(document).filter(([name]) => name.endsWith('_endpoint'))
    expect(routes).toHaveLength(5)
    for (const [, url] of routes.filter(([name]) => name !== 'authorization_endpoint')) {
      const path = String(url).slice(app.issuer.length)
      expect((await app.server.inject({ url: path })).headers.allow).toBe('POST')
    }
    for (const values of Object.values<unknown>(document))
      if (Array.isArray(values)) expect(values).not.toEqual([])
  })

  it('publishes only the public halves of the RSA keys', async () => {
    const { keys } = (await app.server.inject('/.well-known/jwks.json')).json()
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use', 'x5c'])
      expect(key).toMatchObject({ kty: 'RSA', alg: 'RS256', use: 'sig' })
    }
  })

  it('keeps each jwt backend an issuer of its own', async () => {
    const base = '/backends/tokens/.well-known'
    const document = (await app.server.inject(`${base}/openid-configuration`)).json()
    expect(document).toMatchObject({
      issuer: `${app.issuer}/backends/tokens`,
      jwks_uri: `${app.issuer}${base}/jwks.json`,
      id_token_signing_alg_values_supported: ['ES256'],
    })
    expect(document).not.toHaveProperty('token_endpoint')
    const jwks = await app.server.inject(`${base}/jwks.json`)
    expect(jwks.headers['cache-control']).toBe('public, max-age=300')
    expect(jwks.json().keys).toHaveLength(1)
    expect(jwks.json().keys[0]).not.toHaveProperty('d')
    const { token: text } = await calls.issueCredential(ada, 'tokens')
    expect(decodeProtectedHeader(text).kid).toBe(jwks.json().keys[0].kid)
    expect(await calls.statusWith(text)).toBe(401)
    for (const name of ['none', 'Tokens', '%00', 'a%2fb'])
      for (const file of ['openid-configuration', 'jwks.json'])
        expect((await app.server.inject(`/backends/${name}/.well-known/${file}`)).statusCode).not.toBe(200)
  })
})
