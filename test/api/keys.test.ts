import { createLocalJWKSet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

const jwks = async () => (await app.as(undefined).get('/.well-known/jwks.json')).body
const works = async (token: string) => (await app.as(token).get('/v1/status')).status === 200

describe('rotating the keys', () => {
  test('invalidates every access token at once; agents log in again', async () => {
    const agents = [await app.newAgent(), await app.newAgent()]
    const tokens = await Promise.all(agents.map((agent) => app.accessToken(agent)))
    for (const token of tokens) expect(await works(token)).toBe(true)
    const before = await jwks()
    const reply = await app.admin('POST', '/v1/admin/keys/rotate')
    expect([reply.status, reply.body]).toEqual([
      200,
      { key_id: expect.any(String), previous_valid_until: null },
    ])
    for (const token of tokens) {
      const refused = await app.as(token).get('/v1/status')
      expect([refused.status, refused.body.error.code]).toEqual([401, 'unauthorized'])
    }
    const after = await jwks()
    expect(after.keys.map((key: { kid: string }) => key.kid)).toEqual([reply.body.key_id])
    expect(after.keys[0].kid).not.toBe(before.keys[0].kid)
    const fresh = await app.accessToken(agents[0] as (typeof agents)[0])
    expect(await works(fresh)).toBe(true)
    await jwtVerify(fresh, createLocalJWKSet(after), { issuer: 'https://mayfly.test' })
    await expect(jwtVerify(tokens[0] as string, createLocalJWKSet(after))).rejects.toThrow()
    // Opaque tokens are not signed and stay valid.
    for (const agent of agents) expect(await works(agent.token)).toBe(true)
  })

  test('lets the old key verify for the grace period and no longer', async () => {
    const agent = await app.newAgent()
    const old = await app.accessToken(agent)
    const reply = await app.admin('POST', '/v1/admin/keys/rotate', { grace: '30m' })
    expect(Date.parse(reply.body.previous_valid_until)).toBeGreaterThan(Date.now())
    expect((await jwks()).keys).toHaveLength(2)
    expect(await works(old)).toBe(true)
    app.advance(HOUR_MS / 2 + 1_000)
    expect(await works(old)).toBe(false)
    expect((await jwks()).keys).toHaveLength(1)
  })

  test('shortens the grace period of an earlier rotation, and never extends it', async () => {
    const agent = await app.newAgent()
    const old = await app.accessToken(agent)
    await app.admin('POST', '/v1/admin/keys/rotate', { grace: '2h' })
    const middle = await app.accessToken(agent)
    await app.admin('POST', '/v1/admin/keys/rotate', { grace: '5m' })
    app.advance(4 * MINUTE_MS)
    for (const token of [old, middle]) expect(await works(token)).toBe(true)
    await app.admin('POST', '/v1/admin/keys/rotate', { grace: '2h' })
    app.advance(MINUTE_MS + 1_000)
    for (const token of [old, middle]) expect(await works(token)).toBe(false)
    expect((await jwks()).keys).toHaveLength(2)
  })

  test.each([{ grace: 'soon' }, { grace: 5 }, { grace: '0s' }, { other: 1 }, []])(
    '%j is invalid_request',
    async (body) => {
      const reply = await app.admin('POST', '/v1/admin/keys/rotate', body)
      expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    },
  )

  test('is recorded', async () => {
    const { body } = await app.admin('GET', '/v1/admin/audit?action=keys.rotated')
    expect(body[0]).toMatchObject({ action: 'keys.rotated', actor: 'local' })
  })
})

describe('an access token', () => {
  test('lasts one hour by default, and is then refused', async () => {
    const agent = await app.newAgent()
    const form = new URLSearchParams({ grant_type: 'client_credentials', ...agent.oidc })
    const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: form })
    const body = (await reply.json()) as { access_token: string; expires_in: number; token_type: string }
    expect([reply.status, body.expires_in, body.token_type]).toEqual([200, 3_600, 'Bearer'])
    expect(body.access_token).toMatch(/^eyJ/)
    expect(await works(body.access_token)).toBe(true)
    app.advance(HOUR_MS + 6_000)
    expect(await works(body.access_token)).toBe(false)
  })
})
