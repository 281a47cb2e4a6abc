import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { StoreError } from '../../src/store/errors.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

describe.each(DIALECTS)('Idempotency-Key on %s', (dialect) => {
  let app: TestApp
  let agent: NewAgent
  let keys = 0

  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders', max_ttl: '100h' })
    agent = await app.newAgent({ scopes: ['orders'] })
  })
  afterAll(() => app.close())

  const newKey = () => {
    keys += 1
    return `key-${keys}`
  }
  const a = (key: string, body: object = {}, who = agent) =>
    who.client.post(
      '/api/v1/credentials',
      { backend: 'orders', ttl: '50h', ...body },
      { 'idempotency-key': key },
    )

  test('issues once for the same key and body, and repeats the same credential and token', async () => {
    const key = newKey()
    const first = await a(key)
    const second = await a(key)
    expect([second.status, second.body]).toEqual([201, first.body])
    const { body } = await app.admin(
      'GET',
      `/v1/admin/audit?credential=${first.body.id}&action=credential.issued`,
    )
    expect(body).toHaveLength(1)
    const other = await a(newKey())
    expect(other.body.id).not.toBe(first.body.id)
  })

  test('records each repetition of the secret, and no repetition without it', async () => {
    const key = newKey()
    const first = await a(key, { metadata: { job: 7 } })
    const jwt = { ...agent, client: app.as(await app.accessToken(agent)) }
    const second = await a(key, { metadata: { job: 7 } }, jwt)
    expect(second.body).toEqual(first.body)
    app.advance(6 * MINUTE_MS)
    expect((await a(key, { metadata: { job: 7 } })).body.token).toBeUndefined()
    const { body } = await app.admin('GET', `/v1/admin/audit?credential=${first.body.id}`)
    const told = {
      outcome: 'ok',
      agent_id: agent.id,
      actor: agent.id,
      backend: 'orders',
      scopes: ['*'],
      ttl: '50h',
      metadata: { job: 7 },
    }
    expect(body).toMatchObject([
      {
        ...told,
        action: 'credential.repeated',
        auth_method: 'jwt',
        request_id: second.headers.get('x-request-id'),
      },
      {
        ...told,
        action: 'credential.issued',
        auth_method: 'opaque',
        request_id: first.headers.get('x-request-id'),
      },
    ])
    expect(JSON.stringify(body)).not.toContain(first.body.token.split('.')[2])
  })

  test('does not repeat the secret when that cannot be recorded', async () => {
    const key = newKey()
    const first = await a(key)
    const { commit } = app.core.store
    app.core.store.commit = () => Promise.reject(new StoreError('the disk is full'))
    try {
      const reply = await a(key)
      expect([reply.status, reply.body.error?.code]).toEqual([503, 'audit_unavailable'])
      expect(reply.text).not.toMatch(/eyJ[\w-]+\./)
    } finally {
      app.core.store.commit = commit
    }
    expect((await a(key)).body).toEqual(first.body)
  })

  test('repeats nothing to an agent that ends during the request, but does to one that changes', async () => {
    const other = await app.newAgent({ scopes: ['orders'] })
    const key = newKey()
    const first = await a(key, {}, other)
    const { commit } = app.core.store
    const meanwhile = (work: () => Promise<unknown>) => {
      app.core.store.commit = async (change, options) => {
        app.core.store.commit = commit
        await work()
        return commit(change, options)
      }
    }
    meanwhile(() => commit(app.core.store.agents.touch(other.id)))
    expect((await a(key, {}, other)).body).toEqual(first.body)
    meanwhile(() => app.admin('DELETE', `/v1/admin/agents/${other.name}`))
    const late = await a(key, {}, other)
    expect([late.status, late.text.includes('eyJ')]).toEqual([401, false])
    const told = `/v1/admin/audit?credential=${first.body.id}&action=credential.repeated`
    expect((await app.admin('GET', told)).body).toHaveLength(1)
  })

  test('works in group B, by POST and by GET', async () => {
    const post = { 'idempotency-key': newKey() }
    const one = await agent.client.post('/v1/credentials/orders', { ttl: '5m' }, post)
    const two = await agent.client.post('/v1/credentials/orders', { ttl: '5m' }, post)
    expect(two.body).toEqual(one.body)
    const get = { 'idempotency-key': newKey() }
    const three = await agent.client.get('/v1/credentials/orders?ttl=5m', get)
    expect((await agent.client.get('/v1/credentials/orders?ttl=5m', get)).body).toEqual(three.body)
  })

  test('answers conflict for another body under the same key', async () => {
    const key = newKey()
    await a(key)
    for (const change of [{ ttl: '49h' }, { scopes: ['read'] }, { metadata: { a: 1 } }]) {
      const reply = await a(key, change)
      expect([reply.status, reply.body.error.code]).toEqual([409, 'conflict'])
    }
  })

  test('ignores the order of keys in the body', async () => {
    const key = newKey()
    const first = await a(key, { metadata: { a: 1, b: { c: 2, d: 3 } } })
    const second = await a(key, { metadata: { b: { d: 3, c: 2 }, a: 1 } })
    expect(second.body.id).toBe(first.body.id)
  })

  test('keeps the keys of agents apart', async () => {
    const other = await app.newAgent({ scopes: ['orders'] })
    const key = newKey()
    const mine = await a(key)
    const theirs = await a(key, {}, other)
    expect(theirs.status).toBe(201)
    expect(theirs.body.id).not.toBe(mine.body.id)
    expect(theirs.body.token).not.toBe(mine.body.token)
  })

  test('issues once for many simultaneous requests', async () => {
    const key = newKey()
    const replies = await Promise.all(Array.from({ length: 8 }, () => a(key)))
    const issued = new Set(replies.filter(({ status }) => status === 201).map(({ body }) => body.id))
    expect(issued.size).toBe(1)
    for (const { status, body } of replies)
      expect(status === 201 || body.error.code === 'conflict').toBe(true)
    expect((await a(key)).body.id).toBe([...issued][0])
  })

  test('repeats only the metadata after five minutes, and issues again after a day', async () => {
    const key = newKey()
    const first = (await a(key)).body
    app.advance(6 * MINUTE_MS)
    const later = await a(key)
    expect(later.status).toBe(201)
    expect(later.body.token).toBeUndefined()
    expect(later.body).toMatchObject({ id: first.id, expires_at: first.expires_at, scopes: first.scopes })
    app.advance(24 * HOUR_MS)
    const next = await a(key)
    expect(next.status).toBe(201)
    expect(next.body.id).not.toBe(first.id)
  })

  test('issues once for two simultaneous requests after a day', async () => {
    const key = newKey()
    const first = (await a(key)).body
    app.advance(25 * HOUR_MS)
    const { commit } = app.core.store
    let other: Awaited<ReturnType<typeof a>> | undefined
    // Both find that the old claim has run out; the one is done by the time the other takes it away.
    app.core.store.commit = async (change, options) => {
      app.core.store.commit = commit
      other = await a(key)
      return commit(change, options)
    }
    const { status, body } = await a(key)
    expect([status, other?.status]).toEqual([201, 201])
    expect(body.id).not.toBe(first.id)
    expect(body.id).toBe(other?.body.id)
  })

  test('does not repeat the token of a revoked credential', async () => {
    const key = newKey()
    const { id } = (await a(key)).body
    await agent.client.delete(`/v1/active/${id}`)
    const again = await a(key)
    expect([again.body.id, again.body.token]).toEqual([id, undefined])
  })

  test('does not repeat to a narrowed token what it could not be issued', async () => {
    await app.newBackend({ name: `stock-${dialect}` })
    const wide = await app.newAgent({ scopes: ['orders', `stock-${dialect}`] })
    const key = newKey()
    const first = await a(key, {}, wide)
    const narrow = { ...wide, client: app.as(await app.accessToken(wide, `stock-${dialect}`)) }
    const refused = await a(key, {}, narrow)
    expect([refused.status, refused.body.error?.code]).toEqual([403, 'scope_not_allowed'])
    expect((await a(key, {}, wide)).body).toEqual(first.body)
    const denials = `/v1/admin/audit?agent=${wide.id}&action=credential.issue_failed`
    await expect
      .poll(async () => (await app.admin('GET', denials)).body)
      .toMatchObject([{ outcome: 'denied', details: { code: 'scope_not_allowed' } }])
  })

  test('repeats to a narrowed token no secret that outlives it', async () => {
    const wide = await app.newAgent({ scopes: ['orders', 'stock'] })
    const narrow = { ...wide, client: app.as(await app.accessToken(wide, 'orders')) }
    const [lasting, brief] = [newKey(), newKey()]
    await a(lasting, { ttl: '50h' }, wide)
    const refused = await a(lasting, { ttl: '50h' }, narrow)
    expect([refused.status, refused.body.error?.code]).toEqual([403, 'insufficient_scope'])
    expect(refused.text).not.toContain('token":')
    // One that ends with the token, or before it, may be repeated.
    const own = await a(brief, { ttl: '5m' }, narrow)
    expect((await a(brief, { ttl: '5m' }, narrow)).body).toEqual(own.body)
    const denials = `/v1/admin/audit?agent=${wide.id}&action=credential.issue_failed`
    await expect
      .poll(async () => (await app.admin('GET', denials)).body)
      .toMatchObject([{ outcome: 'denied', details: { code: 'insufficient_scope' } }])
  })

  test('keeps the credential of the first request when a repeated request hangs up', async () => {
    const key = newKey()
    const first = await a(key)
    const { find } = app.core.store.credentials
    const accepted = once(app.app.http.server.server, 'connection')
    const { hostname, port } = new URL(app.url)
    const caller = connect(Number(port), hostname)
    const [socket] = (await accepted) as [Socket]
    const found = new Promise<void>((resolve) => {
      app.core.store.credentials.find = async (id) => {
        app.core.store.credentials.find = find
        caller.destroy()
        await once(socket, 'close')
        return find(id).finally(resolve)
      }
    })
    const body = JSON.stringify({ backend: 'orders', ttl: '50h' })
    caller.write(
      `POST /api/v1/credentials HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${agent.token}\r\nIdempotency-Key: ${key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await found
    // Any consequence of hanging up would be visible once these have been answered.
    for (let time = 0; time < 3; time += 1) await app.admin('GET', '/v1/admin/audit?limit=1')
    expect((await agent.client.get(`/api/v1/credentials/${first.body.id}`)).body.status).toBe('active')
    expect((await a(key)).body).toEqual(first.body)
  })

  test.each(['', 'a b', 'x'.repeat(256), 'ä'])('answers invalid_request for the key %j', async (key) => {
    const reply = await a(key)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('does not remember a refusal: the same key may try again', async () => {
    const key = newKey()
    expect((await a(key, { ttl: '500h' })).body.error.code).toBe('ttl_exceeded')
    expect((await a(key)).status).toBe(201)
  })
})
