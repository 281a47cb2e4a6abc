import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../src/domain/limits.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

/** A body may come seconds after the headers that authenticated the caller: an end in between counts. */
describe.each(DIALECTS)('a body that comes after its headers, on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
  })
  afterAll(() => app.close())

  /** Status line and body of a request that is authenticated before `meanwhile`, and whose body comes after it. */
  async function post(
    agent: NewAgent,
    token: string,
    path: string,
    content: object,
    meanwhile: () => Promise<unknown>,
  ): Promise<string> {
    await app.core.lastUse.flush()
    const body = JSON.stringify(content)
    const { hostname, port } = new URL(app.url)
    const socket = connect(Number(port), hostname)
    const heard: Buffer[] = []
    socket.on('data', (chunk) => heard.push(chunk))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const head = [
      `POST ${path} HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: close',
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    await eventually(async () => expect(app.core.lastUse.get(agent.id)).toBeDefined())
    await meanwhile()
    socket.write(body)
    await closed
    return Buffer.concat(heard).toString()
  }

  const remove = (agent: NewAgent) => app.admin('DELETE', `/v1/admin/agents/${agent.name}`)

  test('creates no agent for a caller that was deleted in the meantime', async () => {
    const agent = await app.newAgent({ scopes: ['admin:*'] })
    const wish = { name: 'child', scopes: ['admin:*'] }
    const reply = await post(agent, agent.token, '/v1/admin/agents', wish, () => remove(agent))
    expect(reply).toMatch(/^HTTP\/1\.1 401 /)
    expect(reply).toContain('error="invalid_token"')
    expect((await app.admin('GET', '/v1/admin/agents/child')).status).toBe(404)
  })

  test('issues nothing for a token whose key was rotated away in the meantime', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const token = await app.accessToken(agent)
    const rotate = () => app.admin('POST', '/v1/admin/keys/rotate')
    expect(await post(agent, token, '/v1/credentials/orders', { ttl: '10m' }, rotate)).toMatch(
      /^HTTP\/1\.1 401 /,
    )
    expect((await agent.client.get('/v1/active')).body).toEqual([])
  })

  test('issues nothing for a token that has expired in the meantime', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const token = await app.accessToken(agent)
    const expire = async () => app.advance(HOUR_MS + 6_000)
    expect(await post(agent, token, '/v1/credentials/orders', { ttl: '10m' }, expire)).toMatch(
      /^HTTP\/1\.1 401 /,
    )
    expect((await agent.client.get('/v1/active')).body).toEqual([])
  })

  test('is answered as usual when something else changed in the meantime', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const other = await app.newAgent()
    const reply = await post(agent, agent.token, '/v1/credentials/orders', {}, () => remove(other))
    expect(reply).toMatch(/^HTTP\/1\.1 200 /)
  })
})
