import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, type Reply, startApp, type TestApp } from '../support/app.ts'
import { newPerson } from '../support/person.ts'

let app: TestApp
let admin: NewAgent
beforeAll(async () => {
  app = await startApp({ yaml: 'limits:\n  issue_rate: 1000/minute\n' })
  admin = await app.newAgent({ scopes: ['admin:backends:write'] })
})
afterAll(() => app.close())

const tryIt = (name: string, body?: unknown) => app.admin('POST', `/v1/admin/backends/${name}/try`, body)
const entriesOf = async (id: string) =>
  (await app.admin('GET', `/v1/admin/audit?credential=${id}`)).body.toReversed()
const stepNames = ({ body }: Reply) => body.steps.map((one: { name: string }) => one.name)

describe('POST /v1/admin/backends/:name/try', () => {
  test('issues and ends a credential that is listed and recorded as any other, as one of the local host', async () => {
    const name = await app.newBackend()
    const before = Date.now()
    const { status, body, text } = await tryIt(name)
    expect([status, body]).toEqual([
      200,
      {
        name,
        scopes: ['orders:read'],
        steps: [
          { name: 'check', ms: expect.any(Number) },
          { name: 'issue', ms: expect.any(Number) },
        ],
        id: expect.stringMatching(/^cred_/),
        expires_at: expect.any(String),
        ended: false,
        note: `This kind cannot end a credential early: this one works until ${body.expires_at}. Nobody has its secret.`,
      },
    ])
    const lasts = Date.parse(body.expires_at) - before
    expect(lasts).toBeGreaterThan(55_000)
    expect(lasts).toBeLessThan(65_000)
    const listed = await app.admin('GET', '/v1/admin/tokens?agent=local')
    expect(listed.body).toMatchObject([
      {
        id: body.id,
        agent_id: 'local',
        agent_name: 'local',
        backend: name,
        status: 'revoked',
        upstream: 'expires',
      },
    ])
    const entries = await entriesOf(body.id)
    expect(entries.map((one: { action: string }) => one.action)).toEqual([
      'credential.issued',
      'credential.revoked',
      'backend.tried',
    ])
    expect(entries[0]).toMatchObject({
      actor: 'local',
      agent_id: 'local',
      backend: name,
      scopes: ['orders:read'],
    })
    expect(entries[2]).toMatchObject({ actor: 'local', details: { ended: false }, outcome: 'ok' })
    // A JWT was signed: it is nowhere.
    for (const place of [text, JSON.stringify(entries), app.logged()]) expect(place).not.toContain('eyJ')
  })

  test('records it as one of the agent that asks, which need not hold a scope of the backend', async () => {
    const name = await app.newBackend()
    const { status, body } = await admin.client.post(`/v1/admin/backends/${name}/try`)
    expect(status).toBe(200)
    const entries = await entriesOf(body.id)
    expect(entries).toHaveLength(3)
    for (const entry of entries) expect(entry).toMatchObject({ actor: admin.id, agent_id: admin.id })
    // The credential itself is still beyond it.
    const refused = await admin.client.post(`/v1/credentials/${name}`)
    expect([refused.status, refused.body.error.code]).toEqual([403, 'scope_not_allowed'])
  })

  test('records it as one of the operator that asks, and the list finds it by their id', async () => {
    const name = await app.newBackend()
    const person = await newPerson(app, { scopes: ['admin:backends:write'], backend_scopes: [] })
    const { status, body } = await person.call('POST', `/v1/admin/backends/${name}/try`, {})
    expect([status, stepNames({ body } as Reply)]).toEqual([200, ['check', 'issue']])
    const [issued] = await entriesOf(body.id)
    expect(issued).toMatchObject({
      actor: `operator:${person.email}`,
      agent_id: person.id,
      agent_name: person.email,
      details: { actor_id: person.id },
    })
    const listed = await app.admin('GET', `/v1/admin/tokens?agent=${person.id}`)
    expect(listed.body).toMatchObject([{ id: body.id, agent_id: person.id, agent_name: person.email }])
  })

  test('is refused to a narrowed token, and to who may only read', async () => {
    const name = await app.newBackend()
    const two = await app.newAgent({ scopes: ['admin:backends:write', 'x:read'] })
    const narrowed = app.as(await app.accessToken(two, 'admin:backends:write'))
    const reader = await app.newAgent({ scopes: ['admin:backends:read', name] })
    for (const client of [narrowed, reader.client]) {
      const { status, body } = await client.post(`/v1/admin/backends/${name}/try`)
      expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
    }
    const { body } = await app.admin('GET', `/v1/admin/tokens?backend=${name}`)
    expect(body).toEqual([])
  })

  test('tries the scopes that the body names, as far as the backend may issue them', async () => {
    const name = await app.newBackend({ allowed_scopes: ['a:*', 'b:read'] })
    expect((await tryIt(name)).body.scopes).toEqual(['a:*'])
    expect((await tryIt(name, { scopes: ['b:read', 'a:x'] })).body.scopes).toEqual(['b:read', 'a:x'])
    const refused = await tryIt(name, { scopes: ['b:write'] })
    expect([refused.status, refused.body.error.code]).toEqual([403, 'scope_not_allowed'])
  })

  test.each([
    ['an empty list', { scopes: [] }],
    ['65 scopes', { scopes: new Array(65).fill('a:b') }],
    ['no list', { scopes: 'a:b' }],
    ['a scope that is none', { scopes: ['a b'] }],
    ['markup', { scopes: ['<script>'] }],
    ['a scope of 257 characters', { scopes: ['a'.repeat(257)] }],
    ['a number', { scopes: [1] }],
    ['another field', { scopes: ['a:b'], ttl: '1h' }],
    ['null', null],
  ])('refuses %s, and issues nothing', async (_what, body) => {
    const name = await app.newBackend()
    const reply = await tryIt(name, body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    expect((await app.admin('GET', `/v1/admin/tokens?backend=${name}`)).body).toEqual([])
  })

  test('answers 404 where there is no such backend', async () => {
    const { status, body } = await tryIt('nothing')
    expect([status, body.error.code]).toEqual([404, 'backend_not_found'])
  })

  test('never lasts longer than the backend permits', async () => {
    const name = await app.newBackend({ default_ttl: '5s', max_ttl: '10s' })
    const { body } = await tryIt(name)
    expect(Date.parse(body.expires_at) - Date.now()).toBeLessThanOrEqual(10_000)
  })

  test('counts as the backend counts: its rate and its number of credentials hold', async () => {
    const name = await app.newBackend({ rate: '1/hour' })
    expect((await tryIt(name)).status).toBe(200)
    const { status, body } = await tryIt(name)
    expect([status, body.error.code]).toEqual([429, 'rate_limited'])
  })

  test('takes ten tries of a backend in a minute, and one at a time', async () => {
    const name = await app.newBackend()
    const { store } = app.core
    const { commit } = store
    const refused = Promise.withResolvers<void>()
    store.commit = async (...change) => {
      await refused.promise
      return commit(...change)
    }
    const both = [tryIt(name), tryIt(name)]
    // One of them waits for the store until the other has its answer.
    await Promise.race(both)
    store.commit = commit
    refused.resolve()
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 409])
    for (let tries = 2; tries <= 10; tries += 1) expect((await tryIt(name)).status).toBe(200)
    const { status, body, headers } = await tryIt(name)
    expect([status, body.error.code]).toEqual([429, 'rate_limited'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  })
})
