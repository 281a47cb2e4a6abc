import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

const STS = 'sts.example'
let app: TestApp
beforeAll(async () => {
  app = await startApp({ argv: { audience: ['https://all.example'] } })
})
afterAll(() => app.close())

const create = (body: object) => app.admin('POST', '/v1/admin/agents', body)
async function ask({ oidc }: Pick<NewAgent, 'oidc'>, audience: string) {
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...oidc, audience })
  const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body })
  return { status: reply.status, body: (await reply.json()) as Record<string, string> }
}
const ofNames = (entries: readonly { agent_name?: string | null }[], name: string) =>
  entries.filter((one) => one.agent_name === name)

describe('the audiences of one agent', () => {
  test('are allowed for that agent alone, beside those of the server', async () => {
    const [cloud, other] = [
      (await create({ name: 'cloud', audiences: [STS, STS] })).body,
      await app.newAgent(),
    ]
    for (const audience of [STS, 'https://all.example']) {
      const { status, body } = await ask(cloud, audience)
      expect([status, decodeJwt(body['access_token'] ?? '').aud]).toEqual([200, [audience]])
    }
    const refused = await ask(other, STS)
    expect([refused.status, refused.body['error']]).toEqual([400, 'invalid_target'])
    expect(refused.body['error_description']).toContain('an administrator can allow it for one agent')
    expect((await ask(cloud, `${STS}/`)).body['error']).toBe('invalid_target')
  })

  test('get tokens that can be introspected and revoked like any other', async () => {
    const cloud = (await create({ name: 'revoking', audiences: [STS] })).body
    const post = async (path: string, token: string) => {
      const body = new URLSearchParams({ ...cloud.oidc, token })
      return (await fetch(`${app.url}${path}`, { method: 'POST', body })).json()
    }
    const text = (await ask(cloud, STS)).body['access_token'] ?? ''
    expect(await post('/oauth/introspect', text)).toMatchObject({ active: true, aud: [STS] })
    expect((await app.as(text).get('/v1/status')).status).toBe(401)
    await post('/oauth/revoke', text)
    expect(await post('/oauth/introspect', text)).toEqual({ active: false })
  })

  test('include none of the server, so that an agent loses these with the server', async () => {
    const scopes = ['admin:agents:*']
    const parent = (await create({ name: 'parent', scopes, audiences: ['https://all.example', STS] })).body
    const wish = { name: 'child', audiences: [STS, 'https://all.example'] }
    expect((await app.as(parent.token).post('/v1/admin/agents', wish)).status).toBe(200)
    for (const name of ['parent', 'child'])
      expect((await app.admin('GET', `/v1/admin/agents/${name}`)).body.audiences).toEqual([STS])
  })

  test('are shown and recorded', async () => {
    await create({ name: 'shown', audiences: [STS] })
    expect((await app.admin('GET', '/v1/admin/agents/shown')).body.audiences).toEqual([STS])
    const { body } = await app.admin('GET', '/v1/admin/audit?action=agent.created')
    expect(ofNames(body, 'shown')).toMatchObject([{ details: { audiences: [STS] } }])
  })

  test.each([
    ['a space', ['a b']],
    ['a colon, but no URI', ['1:x']],
    ['nothing', ['']],
    ['more than ASCII', ['sts.exämple']],
    ['a line break', ['a\nb']],
    ['too much', ['a'.repeat(1025)]],
    ['too many', Array.from({ length: 33 }, (_, n) => `a${n}`)],
    ['no list', 'a'],
  ])('are refused with %s', async (_, audiences) => {
    const { status, body } = await create({ name: 'refused', audiences })
    expect([status, body.error?.code]).toEqual([400, 'invalid_request'])
    expect((await app.admin('GET', '/v1/admin/agents/refused')).status).toBe(404)
  })

  test('can be granted by an agent that has them, and not by a narrowed token', async () => {
    const scopes = ['admin:agents:*']
    const [has, lacks] = [
      (await create({ name: 'has', scopes, audiences: [STS] })).body,
      (await create({ name: 'lacks', scopes })).body,
    ]
    const wish = (name: string, audience: string) => ({ name, audiences: [audience] })
    const given = await app.as(has.token).post('/v1/admin/agents', wish('given', STS))
    expect((await ask(given.body, STS)).status).toBe(200)
    expect(
      (await app.as(lacks.token).post('/v1/admin/agents', wish('all', 'https://all.example'))).status,
    ).toBe(200)
    for (const token of [lacks.token, await app.accessToken(has, 'admin:agents:write')]) {
      const { status, body } = await app.as(token).post('/v1/admin/agents', wish('not-given', STS))
      expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
    }
    const failed = async (name: string) =>
      ofNames((await app.admin('GET', '/v1/admin/audit?action=auth.failed')).body, name)
    await expect.poll(() => failed('lacks')).toMatchObject([{ details: { reason: 'audience_not_held' } }])
    await expect.poll(() => failed('has')).toMatchObject([{ details: { reason: 'narrowed_token' } }])
    expect((await app.admin('GET', '/v1/admin/agents/not-given')).status).toBe(404)
  })

  test('let nobody extend their agent who does not hold them', async () => {
    const admin = await app.newAgent({ scopes: ['admin:agents:write'] })
    await create({ name: 'federated', audiences: [STS], expires_in: '1h' })
    const change = async (changes: object) =>
      (await admin.client.patch('/v1/admin/agents/federated', changes)).status
    expect(await change({ expires_in: '2h' })).toBe(403)
    expect(await change({ expires_in: '30m' })).toBe(200)
    expect(await change({ audiences: [], expires_in: '2h' })).toBe(200)
  })
})
