import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { startPostgres } from '../support/postgres.ts'

let app: TestApp
let close: () => Promise<void>
beforeAll(async () => {
  app = await startApp()
  const server = await startPostgres()
  const { url, drop } = await server.createDatabase()
  const { hostname, port, username, password, pathname } = new URL(url)
  const login = { host: hostname, port: Number(port), username, ...(password === '' ? {} : { password }) }
  const config = { ...login, database: pathname.slice(1), databases: ['shop', 'orders'], local: true }
  await app.newBackend({ type: 'postgres', name: 'shop', config }, '?check=false')
  await app.newBackend({ name: 'api', allowed_scopes: ['a', 'b'] })
  close = async () => {
    await app.close()
    await drop()
    await server.stop()
  }
})
afterAll(() => close())

const NEVER =
  'The backend "shop" can never give the scope "shop:shop:write". Its scopes read "shop:<database>:read" or "shop:<database>:write".'
const HINT = 'The backend "shop" can never give the scope "shop:read". Do you mean "shop:shop:read"?'
const UNKNOWN = 'The scope "sopp:x" names no backend: there is none called "sopp".'
const ALLOWED = 'The backend "api" can never give the scope "api:c".'
const SCOPES = [
  'shop:shop:write',
  'shop:read',
  'shop:orders',
  'sopp:x',
  'api:c',
  'api:a',
  'api',
  '*',
  'admin:*',
]
const ALL = [NEVER, HINT, UNKNOWN, ALLOWED]

describe('warnings about scopes that can never be given', () => {
  test('at creation, when an agent changes, at a request and at its approval', async () => {
    const made = await app.admin('POST', '/v1/admin/agents', { name: 'made', scopes: SCOPES })
    expect([made.status, made.body.warnings]).toEqual([200, ALL])
    const changed = await app.admin('PATCH', '/v1/admin/agents/made', { scopes: ['shop:shop:write', 'x'] })
    expect(changed.body.warnings[0]).toBe(NEVER)
    const asked = await app.as(made.body.token).post('/v1/request', { scopes: SCOPES })
    expect(asked.body.warnings).toEqual(ALL)
    const { body: waiting } = await app.admin('GET', '/v1/admin/pending')
    expect(waiting.find(({ id }: { id: string }) => id === asked.body.id).warnings).toEqual(ALL)
    const approved = await app.admin('POST', `/v1/admin/pending/${asked.body.id}/approve`)
    expect([approved.status, approved.body.warnings]).toEqual([200, ALL])
  })

  test('when an administrator asks how a policy would decide', async () => {
    const query = SCOPES.map((scope) => `&scope=${encodeURIComponent(scope)}`).join('')
    const explained = await app.admin('GET', `/v1/admin/policies/explain?name=new${query}`)
    expect([explained.status, explained.body.warnings]).toEqual([200, ALL])
    const fine = await app.admin('GET', '/v1/admin/policies/explain?name=new&scope=api:a')
    expect([fine.status, fine.body.warnings]).toEqual([200, undefined])
  })

  test('at an enrollment, whose caller is told of unknown backends only, and at its approval', async () => {
    const wish = { name: 'new', scopes: SCOPES, public_key: newEnrollee().publicKey }
    const enrolled = await app.as(undefined).post('/v1/enroll', wish)
    expect(enrolled.body.warnings).toEqual([UNKNOWN])
    const approve = (body: object) => app.admin('POST', `/v1/admin/pending/${enrolled.body.id}/approve`, body)
    expect((await approve({ scopes: ['shop:shop:write'] })).body.warnings).toEqual([NEVER])
  })

  test('are absent where there are none', async () => {
    const { body } = await app
      .newAgent({ scopes: ['shop:shop:read', 'shop', 'api:b'] })
      .then((made) => app.admin('GET', `/v1/admin/agents/${made.name}`))
    expect(body.warnings).toBeUndefined()
    const made = await app.admin('POST', '/v1/admin/agents', { name: 'fine', scopes: ['shop:shop', 'api'] })
    expect(made.body).not.toHaveProperty('warnings')
  })
})

describe('a request without scopes', () => {
  const get = (token: string, backend: string, body: object = {}) =>
    app.as(token).post('/api/v1/credentials', { backend, ...body })

  test('gets what the backend can give, and is told what was left out', async () => {
    const { client, token } = await app.newAgent({ scopes: ['api:a', 'api:c', 'other'] })
    const issued = await get(token, 'api')
    expect([issued.status, issued.body.scopes, issued.body.left_out]).toEqual([201, ['a'], ['api:c']])
    expect((await client.post('/v1/credentials/api')).body.left_out).toEqual(['api:c'])
    expect((await get(token, 'api', { scopes: ['a'] })).body).not.toHaveProperty('left_out')
    const whole = await app.newAgent({ scopes: ['api'] })
    expect((await get(whole.token, 'api')).body).not.toHaveProperty('left_out')
  })

  test('repeats what was left out under its Idempotency-Key', async () => {
    const { client } = await app.newAgent({ scopes: ['api:a', 'api:c'] })
    const issue = () => client.post('/api/v1/credentials', { backend: 'api' }, { 'idempotency-key': 'again' })
    const first = (await issue()).body
    expect(first.left_out).toEqual(['api:c'])
    expect((await issue()).body).toEqual(first)
  })

  test('is refused where the backend can give nothing', async () => {
    const { token } = await app.newAgent({ scopes: ['api:c', 'shop:shop:write'] })
    expect((await get(token, 'api')).body.error.code).toBe('scope_not_allowed')
    const refused = await get(token, 'shop')
    expect([refused.status, refused.body.error.message]).toEqual([
      403,
      'This backend can give none of your scopes.',
    ])
  })
})
