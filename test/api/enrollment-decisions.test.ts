import { describe, expect, it } from 'vitest'
import { createAgent } from '../../src/core/agents/create-agent.ts'
import { DAY_MS, HOUR_MS } from '../../src/domain/limits.ts'
import { AS_LOCAL, LOCAL } from '../support/core.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { call, code, decide, enroll, now, poll, test, useFreshCore } from '../support/enrollment.ts'

useFreshCore()

describe('deciding', () => {
  const me = newEnrollee()

  it('is possible once', async () => {
    const { id } = (await enroll(me)).json
    expect((await decide(id, 'approve', {})).status).toBe(200)
    for (const verb of ['approve', 'reject'] as const) {
      const second = await decide(id, verb)
      expect([second.status, code(second)]).toEqual([409, 'conflict'])
    }
  })

  it('is refused after a day', async () => {
    const { id } = (await enroll(me)).json
    test.advance(DAY_MS)
    const late = await decide(id, 'approve')
    expect([late.status, code(late)]).toEqual([410, 'gone'])
    expect((await poll(id, await me.prove(id, now()))).json.status).toBe('expired')
  })

  it('shows the reason of a rejection', async () => {
    const { id } = (await enroll(me)).json
    const rejected = await decide(id, 'reject', { reason: 'Unknown machine.' })
    expect(rejected.json).toMatchObject({ id, status: 'rejected', decision_note: 'Unknown machine.' })
    const seen = await poll(id, await me.prove(id, now()))
    expect(seen.json).toMatchObject({ status: 'rejected', reason: 'Unknown machine.' })
  })

  it('is refused for an unknown enrollment', async () => {
    for (const id of ['enr_01m7y253p8e54bd2j94v1j84fc', 'nothing']) {
      const reply = await decide(id, 'approve')
      expect([reply.status, code(reply)]).toEqual([404, 'enrollment_not_found'])
    }
  })

  const malformed: [string, object][] = [
    ['an unknown field', { scope: ['a'] }],
    ['scopes null', { scopes: null }],
    ['a malformed scope', { scopes: ['a b'] }],
    ['a malformed duration', { expires_in: 'never' }],
    ['a number for a duration', { expires_in: 60 }],
    ['a long note', { note: 'n'.repeat(1_025) }],
  ]
  it('is refused in a wrong form', async () => {
    const { id } = (await enroll(me)).json
    for (const [what, body] of malformed)
      expect([what, (await decide(id, 'approve', body)).status]).toEqual([what, 400])
    expect((await test.core.store.enrollments.find(id))?.status).toBe('pending')
  })

  it('requires its scope and the granted scopes', async () => {
    const make = (name: string, scopes: string[]) => createAgent(test.core, LOCAL, { name, scopes })
    const reader = (await make('reader', ['admin:enrollments:read', 'db:read'])).token
    const writer = (await make('writer', ['admin:enrollments:write'])).token
    const { id } = (await enroll(me)).json
    for (const [token, scope] of [
      [reader, 'admin:enrollments:write'],
      [writer, 'db:read'],
    ] as const) {
      const refused = await decide(id, 'approve', {}, token)
      expect([refused.status, code(refused)]).toEqual([403, 'insufficient_scope'])
      expect(refused.headers['www-authenticate']).toContain(`scope="${scope}"`)
    }
    expect((await decide(id, 'reject', {}, reader)).status).toBe(403)
    expect((await call('GET', '/v1/admin/pending', { token: writer })).status).toBe(403)
    expect((await call('GET', '/v1/admin/pending', { token: reader })).status).toBe(200)
    for (const url of ['/v1/admin/pending', '/v1/admin/policies'])
      expect((await call('GET', url)).status).toBe(401)
    expect((await call('POST', `/v1/admin/pending/${id}/approve`)).status).toBe(401)
    expect((await decide(id, 'approve', { scopes: [] }, writer)).json).toMatchObject({
      status: 'approved',
      scopes: [],
    })
  })

  it('pages through pending enrollments', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) await enroll(me, { name })
    const seen: string[] = []
    let url: string | undefined = '/v1/admin/pending?limit=2&status=pending'
    for (let page = 0; url !== undefined && page < 9; page += 1) {
      const reply = await call('GET', url, { headers: AS_LOCAL })
      seen.push(...reply.json.map((one: { name: string }) => one.name))
      url = /^<([^>]+)>; rel="next"$/.exec(String(reply.headers['link'] ?? ''))?.[1]
    }
    expect(seen).toEqual(names)
    for (const query of ['status=all', 'limit=0', 'limit=1001', 'page=2', 'cursor='])
      expect((await call('GET', `/v1/admin/pending?${query}`, { headers: AS_LOCAL })).status).toBe(400)
  })
})

describe('an agent that asks for more', () => {
  const ask = (token: string, body: object) => call('POST', '/v1/request', { token, body })

  it('gets the scopes for a time, and loses them when it has passed', async () => {
    const { token } = await createAgent(test.core, LOCAL, { name: 'bot', scopes: ['db:read'] })
    const asked = await ask(token, { scopes: ['db:write'], reason: 'migration', expires_in: '2h' })
    expect(asked.status).toBe(200)
    expect(asked.json).toMatchObject({
      status: 'pending',
      scopes: ['db:write'],
      reason: 'migration',
      expires_in: '2h',
    })
    const scopes = async () => (await call('GET', '/v1/status', { token })).json.scopes
    const pending = await call('GET', '/v1/admin/pending', { headers: AS_LOCAL })
    expect(pending.json).toMatchObject([
      {
        id: asked.json.id,
        type: 'amendment',
        name: 'bot',
        reason: 'migration',
        expires_in: '2h',
        public_key_fingerprint: null,
      },
    ])
    expect(await scopes()).toEqual(['db:read'])
    expect((await decide(asked.json.id, 'approve', { expires_in: '1h' })).json).toMatchObject({
      status: 'approved',
    })
    expect(await scopes()).toEqual(['db:read', 'db:write'])
    test.advance(HOUR_MS)
    expect(await scopes()).toEqual(['db:read'])
    expect(code(await decide(asked.json.id, 'approve'))).toBe('conflict')
  })

  it('gets admin scopes only from an administrator', async () => {
    const { token } = await createAgent(test.core, LOCAL, { name: 'ci-bot', scopes: [] })
    const asked = await ask(token, { scopes: ['admin:audit:read'] })
    expect(asked.json.status).toBe('pending')
    await decide(asked.json.id, 'approve')
    expect((await call('GET', '/v1/status', { token })).json.scopes).toEqual(['admin:audit:read'])
  })

  const malformed: [string, object][] = [
    ['no scopes', {}],
    ['an empty list', { scopes: [] }],
    ['a malformed scope', { scopes: [':'] }],
    ['an unknown field', { scopes: ['a:b'], agent: 'other' }],
    ['an empty reason', { scopes: ['a:b'], reason: '' }],
    ['no duration', { scopes: ['a:b'], expires_in: '-1h' }],
  ]
  it('is refused in a wrong form', async () => {
    const { token } = await createAgent(test.core, LOCAL, { name: 'bot' })
    for (const [what, body] of malformed) expect([what, (await ask(token, body)).status]).toEqual([what, 400])
  })

  it('must be authenticated', async () => {
    expect((await call('POST', '/v1/request', { body: { scopes: ['a:b'] } })).status).toBe(401)
    const local = { headers: AS_LOCAL, body: { scopes: ['a:b'] } }
    expect((await call('POST', '/v1/request', local)).status).toBe(401)
  })
})
