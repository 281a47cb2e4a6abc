import { createRemoteJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let agent: NewAgent

beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  for (const algorithm of ['ES256', 'EdDSA', 'RS256'])
    await app.newBackend({ name: `jwt-${algorithm}`, config: { audience: 'api', algorithm } })
  agent = await app.newAgent({ scopes: ['jwt-ES256', 'jwt-EdDSA', 'jwt-RS256'] })
})
afterAll(() => app.close())

/** As a resource server does: from the issuer's address alone. */
async function discover(issuer: string) {
  const response = await fetch(`${issuer}/.well-known/openid-configuration`)
  const document = (await response.json()) as { issuer: string; jwks_uri: string }
  expect(document.issuer).toBe(issuer)
  return createRemoteJWKSet(new URL(document.jwks_uri))
}

describe('a credential of kind jwt', () => {
  test.each(['ES256', 'EdDSA', 'RS256'])(
    'with %s verifies against the discovery document of its backend',
    async (algorithm) => {
      const { body } = await agent.client.post('/api/v1/credentials', {
        backend: `jwt-${algorithm}`,
        scopes: ['read'],
        ttl: '5m',
      })
      const issuer = `${app.url}/backends/jwt-${algorithm}`
      const { payload, protectedHeader } = await jwtVerify(body.token, await discover(issuer), {
        issuer,
        audience: 'api',
        typ: 'at+jwt',
      })
      expect(protectedHeader.alg).toBe(algorithm)
      expect(payload).toMatchObject({ sub: agent.id, scope: 'read', jti: body.id, client_id: agent.id })
      expect((payload.exp ?? 0) * 1_000).toBeLessThanOrEqual(Date.parse(body.expires_at))
    },
  )

  test('is taken for none of another issuer: not for ours, nor for another backend’s', async () => {
    const { token } = (await agent.client.post('/v1/credentials/jwt-ES256')).body
    await expect(jwtVerify(token, await discover(app.url))).rejects.toThrow()
    await expect(jwtVerify(token, await discover(`${app.url}/backends/jwt-EdDSA`))).rejects.toThrow()
    expect((await app.as(token).get('/v1/status')).status).toBe(401)
    const access = await app.accessToken(agent)
    await jwtVerify(access, await discover(app.url), { issuer: app.url, audience: app.url })
    await expect(jwtVerify(access, await discover(`${app.url}/backends/jwt-RS256`))).rejects.toThrow()
  })

  test('cannot be ended before its expiry, and the backend and the reply say so', async () => {
    const backend = (await agent.client.get('/api/v1/backends/jwt-ES256')).body
    expect(backend.revocation).toBe('expiry_only')
    const { id } = (await agent.client.post('/v1/credentials/jwt-ES256')).body
    expect((await agent.client.delete(`/api/v1/credentials/${id}`)).body.upstream).toBe('expires')
  })
})
