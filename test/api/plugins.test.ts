import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

describe('plugins', () => {
  test('lists the plugins on reload, and issuing continues', async () => {
    const backend = await app.newBackend()
    const agent = await app.newAgent({ scopes: [backend] })
    const before = (await agent.client.post(`/v1/credentials/${backend}`)).status
    const reply = await app.admin('POST', '/v1/admin/plugins/reload')
    expect(reply.status).toBe(200)
    expect(Object.keys(reply.body).sort()).toEqual(['loaded', 'plugins'])
    expect(reply.body.loaded).toBe(reply.body.plugins.length)
    expect(reply.body.plugins).toEqual((await app.admin('GET', '/v1/admin/plugins')).body)
    expect(reply.body.plugins[0]).toEqual({
      name: expect.any(String),
      version: expect.any(String),
      builtin: true,
    })
    expect([before, (await agent.client.post(`/v1/credentials/${backend}`)).status]).toEqual([200, 200])
  })

  test('reloads one plugin by name, and answers not_found for an unknown name', async () => {
    const reply = await app.admin('POST', '/v1/admin/plugins/jwt/reload')
    expect([reply.status, reply.body]).toEqual([200, { reloaded: 'jwt', version: expect.any(String) }])
    for (const name of ['nonsense', '..%2f..%2fetc', 'JWT']) {
      const none = await app.admin('POST', `/v1/admin/plugins/${name}/reload`)
      expect([name, none.status, none.body.error.code]).toEqual([name, 404, 'not_found'])
    }
    const { body } = await app.admin('GET', '/v1/admin/audit?action=plugin.reloaded')
    expect(body.length).toBeGreaterThan(0)
  })
})
