import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createBackend } from '../../src/core/backends/configure-backend.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { LOCAL } from '../support/core.ts'
import { DIALECTS } from '../support/store.ts'

/** A node must not read again what it knows because of something that happens to another agent. */
describe.each(DIALECTS)('what is cached, on %s', (dialect) => {
  let app: TestApp
  let agent: NewAgent
  let token: string
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    agent = await app.newAgent({ scopes: ['orders'] })
    token = await app.accessToken(agent)
  })
  afterAll(() => app.close())

  /** Whether each can be answered from memory: then there is no promise. */
  async function inMemory() {
    const generation = await app.core.store.generation()
    const found = [agent.token, token].map((one) => app.core.callers.find(one, generation))
    const [bearer, jwt] = found.map((one) => !(one instanceof Promise))
    const memory = {
      bearer,
      token: jwt,
      client: app.core.callers.knownClient(agent.oidc.client_id) !== undefined,
      keys: !(app.core.issuerKeys.at(generation) instanceof Promise),
      backends: !(app.core.backends.at(generation) instanceof Promise),
    }
    // A look-up that goes on would meet a closed store.
    await Promise.all(found)
    return memory
  }

  async function warm() {
    await app.accessToken(agent)
    for (const bearer of [agent.token, token])
      expect((await app.as(bearer).post('/v1/credentials/orders')).status).toBe(200)
  }

  async function revoke(of: NewAgent, text: string) {
    const form = new URLSearchParams({ ...of.oidc, token: text })
    expect((await fetch(`${app.url}/oauth/revoke`, { method: 'POST', body: form })).status).toBe(200)
  }
  const all = { bearer: true, token: true, client: true, keys: true, backends: true }

  test('stays while other agents log in, revoke their tokens, come and go', async () => {
    await warm()
    expect(await inMemory()).toEqual(all)
    const other = await app.newAgent()
    const text = await app.accessToken(other)
    expect((await app.as(text).get('/v1/status')).status).toBe(200)
    await revoke(other, text)
    expect((await app.as(text).get('/v1/status')).status).toBe(401)
    expect((await other.client.delete('/v1/self')).status).toBe(204)
    expect((await other.client.get('/v1/status')).status).toBe(401)
    expect(await inMemory()).toEqual(all)
  })

  test('is forgotten where it changed, and nowhere else', async () => {
    await warm()
    await revoke(agent, await app.accessToken(agent))
    expect(await inMemory()).toEqual({ ...all, bearer: false, token: false, client: false })
    await warm()
    // Not over the interface, which reads the new backend for its reply.
    const config = { audience: 'reports' }
    await createBackend(app.core, LOCAL, { type: 'jwt', name: 'reports', config }, false)
    expect(await inMemory()).toEqual({ ...all, backends: false })
    await warm()
    await app.admin('POST', '/v1/admin/keys/rotate', { grace: '1h' })
    expect(await inMemory()).toEqual({ ...all, token: false, keys: false })
  })
})
