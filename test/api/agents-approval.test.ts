import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { DIALECTS } from '../support/store.ts'

const YAML = `limits: { enrollments_per_minute: 1000 }
policies:
  - { name: cloud, pattern: 'cloud-*', scopes: [orders], audiences: [sts.example] }`

describe.each(DIALECTS)('approving an enrollment, on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect, yaml: YAML })
    await app.newBackend({ name: 'orders' })
  })
  afterAll(() => app.close())

  const enroll = async (name: string) =>
    (
      await app
        .as(undefined)
        .post('/v1/enroll', { name, scopes: ['orders'], public_key: newEnrollee().publicKey })
    ).body.id as string
  const approve = (id: string, body?: object) => app.admin('POST', `/v1/admin/pending/${id}/approve`, body)
  const pending = async (id: string) =>
    (await app.admin('GET', '/v1/admin/pending?limit=1000')).body.find((one: { id: string }) => one.id === id)

  test('shows that the name is taken, and replaces the agent that has it on request', async () => {
    const old = await app.newAgent({ name: 'Runner', scopes: ['orders'] })
    const credential = (await old.client.post('/api/v1/credentials', { backend: 'orders' })).body.id
    const id = await enroll('runner')
    expect(await pending(id)).toMatchObject({
      name_taken: true,
      note: expect.stringContaining('already exists'),
    })
    const refused = await approve(id)
    expect([refused.status, refused.body.error]).toMatchObject([
      409,
      {
        code: 'conflict',
        message:
          'An agent with this name already exists. Approve with "replace": true to delete it first, or reject.',
      },
    ])
    const { status, body } = await approve(id, { replace: true })
    expect([status, body.status]).toEqual([200, 'approved'])
    expect((await old.client.get('/v1/status')).status).toBe(401)
    const agent = (await app.admin('GET', '/v1/admin/agents/runner')).body
    expect([agent.id, agent.name]).toEqual([body.agent_id, 'runner'])
    const tokens = (await app.admin('GET', `/v1/admin/tokens?agent=${old.id}`)).body
    expect(tokens).toMatchObject([{ id: credential, status: 'revoked' }])
    const deleted = (await app.admin('GET', `/v1/admin/audit?agent_id=${old.id}&action=agent.deleted`)).body
    expect(deleted).toMatchObject([{ actor: 'local' }])
    const created = (await app.admin('GET', `/v1/admin/audit?agent=${agent.id}&action=agent.created`)).body
    expect(created).toMatchObject([{ details: { replaces: old.id } }])
  })

  test('shows no taken name where it is free, decided, or a request for more scopes', async () => {
    const free = await enroll('free')
    expect(await pending(free)).not.toHaveProperty('name_taken')
    expect((await approve(free, { replace: true })).status).toBe(200)
    const agent = await app.newAgent()
    const asked = (await agent.client.post('/v1/request', { scopes: ['orders'] })).body.id
    expect(await pending(asked)).not.toHaveProperty('name_taken')
    for (const body of [{ replace: true }, { audiences: ['sts.example'] }])
      expect((await approve(asked, body)).body.error.code).toBe('invalid_request')
    const decided = (await app.admin('GET', '/v1/admin/pending?status=approved')).body
    for (const one of decided) expect(one).not.toHaveProperty('name_taken')
  })

  test('replaces only for those who may delete agents', async () => {
    const scopes = ['admin:enrollments:write', 'orders']
    const [approver, both] = [
      await app.newAgent({ scopes }),
      await app.newAgent({ scopes: [...scopes, 'admin:agents:write'] }),
    ]
    const old = await app.newAgent({ name: 'kept' })
    const id = await enroll('kept')
    const by = (token: string) => app.as(token).post(`/v1/admin/pending/${id}/approve`, { replace: true })
    const refused = await by(approver.token)
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      403,
      expect.stringContaining('scope="admin:agents:write"'),
    ])
    expect((await old.client.get('/v1/status')).status).toBe(200)
    expect((await by(both.token)).status).toBe(200)
    expect((await old.client.get('/v1/status')).status).toBe(401)
  })

  test('of two approvals that replace the same agent, one succeeds', async () => {
    await app.newAgent({ name: 'twice' })
    const ids = [await enroll('twice'), await enroll('twice')]
    const replies = await Promise.all(ids.map((id) => approve(id, { replace: true })))
    const done = replies.filter(({ status }) => status === 200)
    const last = (await app.admin('GET', '/v1/admin/agents/twice')).body.id
    expect(done.map(({ body }) => body.agent_id)).toContain(last)
    for (const { status, body } of replies) if (status !== 200) expect(body.error.code).toBe('conflict')
  })

  test('sets the audiences of the agent: those of its policy, or others that the caller may allow', async () => {
    const [own, given, none] = [await enroll('cloud-1'), await enroll('cloud-2'), await enroll('cloud-3')]
    await approve(own)
    await approve(given, { audiences: ['https://other.example'] })
    await approve(none, { audiences: [] })
    const audiences = async (n: number) =>
      (await app.admin('GET', `/v1/admin/agents/cloud-${n}`)).body.audiences
    expect([await audiences(1), await audiences(2), await audiences(3)]).toEqual([
      ['sts.example'],
      ['https://other.example'],
      undefined,
    ])
    const approver = await app.newAgent({ scopes: ['admin:enrollments:write', 'orders'] })
    const id = await enroll('cloud-4')
    const by = (body?: object) => app.as(approver.token).post(`/v1/admin/pending/${id}/approve`, body)
    expect((await by()).body.error.code).toBe('insufficient_scope')
    expect((await by({ audiences: ['a b'] })).body.error.code).toBe('invalid_request')
    expect((await by({ audiences: [] })).status).toBe(200)
  })

  test('an agent reads what became of its own requests, and of no others', async () => {
    const [agent, other] = [await app.newAgent(), await app.newAgent()]
    const ask = async (body: object) => (await agent.client.post('/v1/request', body)).body.id as string
    const read = async (id: string, by = agent) => (await by.client.get(`/v1/request/${id}`)).body
    const [approved, rejected, waiting] = [
      await ask({ scopes: ['orders:a'], reason: 'the report', expires_in: '1h' }),
      await ask({ scopes: ['orders:b'] }),
      await ask({ scopes: ['orders:c'] }),
    ]
    expect(await read(approved)).toMatchObject({ status: 'pending', reason: 'the report', expires_in: '1h' })
    await approve(approved, { note: 'for administrators' })
    await app.admin('POST', `/v1/admin/pending/${rejected}/reject`, { reason: 'ask for less' })
    expect(await read(approved)).toMatchObject({ status: 'approved', decided_at: expect.any(String) })
    expect(await read(approved)).not.toHaveProperty('decision_note')
    expect(await read(rejected)).toMatchObject({ status: 'rejected', decision_note: 'ask for less' })
    const texts = []
    for (const id of [approved, await enroll('somebody'), `enr_${'0'.repeat(26)}`, 'nonsense']) {
      const { status, body } = await other.client.get(`/v1/request/${id}`)
      texts.push(JSON.stringify([status, body.error.code, body.error.message]))
    }
    expect(new Set(texts)).toEqual(new Set(['[404,"enrollment_not_found","There is no such enrollment."]']))
    app.advance(25 * 3_600_000)
    expect(await read(waiting)).toMatchObject({ status: 'expired' })
  })

  test('filters by backend ignore case, as look-up does, also of a deleted one', async () => {
    await app.newBackend({ name: 'Mixed' })
    const agent = await app.newAgent({ scopes: ['Mixed'] })
    const { id } = (await agent.client.post('/v1/credentials/mIXED')).body
    for (const isDeleted of [false, true]) {
      if (isDeleted) await app.admin('DELETE', '/v1/admin/backends/mixed?force=true')
      for (const name of ['Mixed', 'mixed', 'MIXED']) {
        const tokens = await app.admin('GET', `/v1/admin/tokens?backend=${name}`)
        expect(tokens.body.map((one: { id: string }) => one.id)).toEqual([id])
        const audit = await agent.client.get(`/api/v1/audit?backend=${name}&action=credential.issued`)
        expect(audit.body.entries.map((one: { credential_id: string }) => one.credential_id)).toEqual([id])
      }
    }
    expect((await app.admin('GET', '/v1/admin/tokens?backend=nowhere')).body).toEqual([])
  })
})
