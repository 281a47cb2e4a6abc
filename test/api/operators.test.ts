import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { callAsPage, enter, linkOf, logInAgain, newPerson, personOf } from '../support/person.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

const entries = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=20`)).body as {
    actor: string
    details: Record<string, unknown>
  }[]

describe('the first operator', () => {
  test('is made by the first link, which asks for a name once, and further links log them in', async () => {
    const made = (await app.local.post('/v1/admin/console/links')).body
    expect(made).toMatchObject({
      operator: null,
      url: expect.stringMatching(/^https:\/\/mayfly\.test\/console#link=mfl_/),
    })
    const link = linkOf(made.url)
    const opened = await callAsPage(app, 'POST', '/v1/console/login/link', { link })
    expect([opened.status, opened.headers.get('set-cookie')]).toEqual([200, null])
    expect(linkOf(`#link=${opened.body.link}`)).not.toBe('')
    // The printed link worked once.
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', { link })).status).toBe(401)
    const who = { link: opened.body.link, email: 'Alice@Example.com', name: 'Alice' }
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', { ...who, email: 'a b@c' })).status).toBe(
      400,
    )
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', { link: who.link })).status).toBe(400)
    const entered = await callAsPage(app, 'POST', '/v1/console/login/link', who)
    expect(entered.status).toBe(200)
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', who)).status).toBe(401)
    const alice = personOf(app, { id: '', email: 'alice@example.com' }, entered)
    const me = (await alice.call('GET', '/v1/admin/me')).body
    expect(me).toMatchObject({
      kind: 'operator',
      email: 'alice@example.com',
      name: 'Alice',
      scopes: ['admin:*'],
      backend_scopes: ['*'],
    })
    expect(me.operations).toContain('createAgent')
    expect(me.operations).toContain('logOut')
    expect(me.operations).not.toContain('issueCredential')
    expect((await entries('operator.created'))[0]).toMatchObject({
      actor: 'operator:alice@example.com',
      auth_method: 'session',
      details: { actor_id: me.id, operator_id: me.id },
    })
    const again = (await app.local.post('/v1/admin/console/links')).body
    expect(again.operator).toBe('alice@example.com')
    const second = await enter(app, linkOf(again.url), me)
    expect((await second.call('GET', '/v1/admin/me')).body.id).toBe(me.id)
    expect((await entries('operator.link_made'))[0]).toMatchObject({
      actor: 'local',
      details: { kind: 'login', operator_id: me.id },
    })
  })

  test('a link lasts a minute, and a link for a name ten', async () => {
    const { url } = (await app.local.post('/v1/admin/console/links')).body
    app.advance(60_000)
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', { link: linkOf(url) })).status).toBe(401)
  })

  test('only admin.sock makes links', async () => {
    const agent = await app.newAgent({ scopes: ['admin:*', '*'] })
    expect(await agent.client.post('/v1/admin/console/links')).toMatchObject({
      status: 403,
      body: { error: { code: 'not_allowed' } },
    })
    expect((await app.as(undefined).post('/v1/admin/console/links')).body.error.code).toBe('not_allowed')
    const person = await newPerson(app)
    expect((await person.act('POST', '/v1/admin/console/links')).body.error.code).toBe('not_allowed')
    expect(
      (await app.local.post('/v1/admin/console/links', { operator: 'nobody@x.y' })).body.error.code,
    ).toBe('operator_not_found')
  })
})

describe('operators', () => {
  test('are invited, come in once by the link, and are listed', async () => {
    const invited = await app.local.post('/v1/admin/operators', {
      email: 'Bob@example.com',
      name: 'Bob',
      scopes: ['admin:agents:read'],
    })
    expect(invited.status).toBe(200)
    expect(invited.body).toMatchObject({
      email: 'bob@example.com',
      name: 'Bob',
      joined_at: null,
      created_by: 'local',
    })
    const link = linkOf(invited.body.invitation.url)
    const bob = await enter(app, link, invited.body)
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', { link })).status).toBe(401)
    expect((await bob.call('GET', '/v1/admin/agents')).status).toBe(200)
    expect((await bob.call('POST', '/v1/admin/agents', { name: 'x' })).body.error.code).toBe(
      'insufficient_scope',
    )
    expect((await app.local.get('/v1/admin/operators/bob@example.com')).body).toMatchObject({
      id: invited.body.id,
      joined_at: expect.any(String),
    })
    const all = (await app.local.get('/v1/admin/operators')).body
    expect(all.map(({ email }: { email: string }) => email)).toContain('bob@example.com')
    const page = await app.local.get('/v1/admin/operators?limit=1')
    expect([page.body.length, page.headers.get('link')]).toEqual([1, expect.stringContaining('cursor=op_')])
    const taken = await app.local.post('/v1/admin/operators', { email: 'BOB@example.com', scopes: [] })
    expect(taken.body.error.code).toBe('conflict')
  })

  test('an operator without scopes sees only themself', async () => {
    const eve = await newPerson(app, { scopes: [], backend_scopes: [] })
    expect((await eve.call('GET', `/v1/admin/operators/${eve.id}`)).body.id).toBe(eve.id)
    expect((await eve.call('GET', `/v1/admin/operators/${eve.email}`)).body.id).toBe(eve.id)
    for (const path of ['bob@example.com', 'nobody@example.com', `op_${'0'.repeat(26)}`]) {
      const reply = await eve.call('GET', `/v1/admin/operators/${path}`)
      expect([path, reply.status, reply.body.error.code]).toEqual([path, 403, 'insufficient_scope'])
    }
    const sessions = (await eve.call('GET', '/v1/admin/sessions')).body
    expect(
      sessions.map((one: { operator_id: string; current: boolean }) => [one.operator_id, one.current]),
    ).toEqual([[eve.id, true]])
    expect((await eve.call('GET', '/v1/admin/sessions?operator=bob@example.com')).status).toBe(403)
    expect((await eve.call('GET', '/api/v1/audit')).body.error.code).toBe('insufficient_scope')
    expect((await eve.call('GET', '/api/v1/backends')).status).toBe(200)
  })

  test('nobody gives more than they hold, to operators as to agents', async () => {
    const half = await newPerson(app, {
      scopes: ['admin:operators:*', 'admin:agents:*', 'admin:enrollments:*'],
      backend_scopes: ['orders'],
    })
    const refused = async (method: string, path: string, body: unknown) => {
      const reply = await half.act(method, path, body)
      expect([path, reply.status, reply.body.error?.code]).toEqual([path, 403, 'insufficient_scope'])
    }
    await refused('POST', '/v1/admin/operators', { email: 'c@example.com', scopes: ['admin:*'] })
    await refused('POST', '/v1/admin/operators', {
      email: 'c@example.com',
      scopes: [],
      backend_scopes: ['*'],
    })
    await refused('POST', '/v1/admin/agents', { name: 'too-much', scopes: ['billing'] })
    await refused('PATCH', `/v1/admin/operators/${half.id}`, { scopes: ['admin:*'] })
    const invited = await half.act('POST', '/v1/admin/operators', {
      email: 'c@example.com',
      scopes: ['admin:operators:read'],
      backend_scopes: ['orders:read'],
    })
    expect(invited.status).toBe(200)
    // An invitation for somebody who holds more would be a way to their scopes.
    const full = await newPerson(app)
    await refused('POST', `/v1/admin/operators/${full.id}/invitation`, undefined)
    expect((await half.act('POST', '/v1/admin/operators/c@example.com/invitation')).status).toBe(200)
    expect(
      (await half.call('POST', '/v1/admin/agents', { name: 'fits', scopes: ['orders:read'] })).status,
    ).toBe(200)
    const narrow = await app.newAgent({ scopes: ['admin:operators:write'] })
    expect(
      (await narrow.client.post('/v1/admin/operators', { email: 'd@example.com', scopes: ['admin:*'] }))
        .status,
    ).toBe(403)
  })

  test('what changes takes effect with the next request, and replaces', async () => {
    const dan = await newPerson(app, { email: 'dan@example.com' })
    expect((await dan.call('GET', '/v1/admin/agents')).status).toBe(200)
    const changed = await app.local.patch('/v1/admin/operators/dan@example.com', {
      scopes: ['admin:audit:read'],
      backend_scopes: [],
    })
    expect(changed.body).toMatchObject({ scopes: ['admin:audit:read'], backend_scopes: [] })
    expect((await dan.call('GET', '/v1/admin/agents')).status).toBe(403)
    expect((await dan.call('GET', '/v1/admin/audit')).status).toBe(200)
    expect((await entries('operator.changed'))[0]?.details).toMatchObject({
      email: 'dan@example.com',
      added: [],
      removed: ['admin:*', '*'],
    })
    expect((await app.local.patch('/v1/admin/operators/dan@example.com', {})).status).toBe(400)
  })

  test('a removed operator is out at once, with invitations and links; the address is free again', async () => {
    const eva = await newPerson(app, { email: 'eva@example.com' })
    const again = await app.local.post('/v1/admin/operators/eva@example.com/invitation')
    expect((await app.local.delete('/v1/admin/operators/eva@example.com')).status).toBe(204)
    expect((await eva.call('GET', '/v1/admin/me')).status).toBe(401)
    const link = linkOf(again.body.invitation.url)
    expect((await callAsPage(app, 'POST', '/v1/console/login/link', { link })).status).toBe(401)
    await expect(logInAgain(app, eva)).rejects.toThrow('unauthorized')
    expect((await app.local.delete('/v1/admin/operators/eva@example.com')).body.error.code).toBe(
      'operator_not_found',
    )
    const ended = (await entries('session.ended'))[0]
    expect(ended).toMatchObject({
      actor: 'local',
      details: { email: 'eva@example.com', reason: 'operator_deleted' },
    })
    const next = await newPerson(app, { email: 'eva@example.com', scopes: [] })
    expect(next.id).not.toBe(eva.id)
  })

  test('the last operator with admin:* stays, except for admin.sock', async () => {
    const own = await startApp()
    const alice = await newPerson(own)
    const agent = await own.newAgent({ scopes: ['admin:*', '*'] })
    const lastOne = { status: 409, body: { error: { code: 'conflict' } } }
    expect(await agent.client.delete(`/v1/admin/operators/${alice.id}`)).toMatchObject(lastOne)
    expect(await agent.client.patch(`/v1/admin/operators/${alice.id}`, { scopes: [] })).toMatchObject(lastOne)
    // Somebody who never came in is no replacement.
    await own.local.post('/v1/admin/operators', { email: 'late@example.com', scopes: ['admin:*'] })
    expect(await alice.act('DELETE', `/v1/admin/operators/${alice.id}`)).toMatchObject(lastOne)
    const bob = await newPerson(own)
    // Two who remove each other at once: one of them stays.
    const both = await Promise.all([
      alice.act('DELETE', `/v1/admin/operators/${bob.id}`),
      bob.act('DELETE', `/v1/admin/operators/${alice.id}`),
    ])
    expect(both.filter(({ status }) => status === 204)).toHaveLength(1)
    const left = (await own.local.get('/v1/admin/operators')).body
    const last = left.find(({ joined_at: at }: { joined_at: string | null }) => at !== null)
    expect((await own.local.delete(`/v1/admin/operators/${last.id}`)).status).toBe(204)
    await own.close()
  })
})

describe('hostile operators', () => {
  const long = 'x'.repeat(250)
  test.each<[string, Record<string, unknown>]>([
    ['no address', { email: 'alice' }],
    ['an address with spaces', { email: 'a b@example.com' }],
    ['an address with a line break', { email: 'a@example.com\nx' }],
    ['an address that is too long', { email: `${long}@example.com` }],
    ['an address with letters that fold into others', { email: '\u212aim@example.com' }],
    ['an address with markup', { email: '<b>@example.com' }],
    ['an address with a colon', { email: 'operator:a@example.com' }],
    ['two addresses', { email: 'a@example.com,b@example.com' }],
    ['a domain with a space before it', { email: 'a@ example.com' }],
    ['a list', { email: ['a@example.com'] }],
    ['a name with a line break', { name: 'Alice\nadmin' }],
    ['a name that turns the text around', { name: 'Alice\u202Eecila' }],
    ['an invisible name', { name: '\u200b' }],
    ['an empty name', { name: '' }],
    ['a name with a space at its end', { name: 'Alice ' }],
    ['a name that is too long', { name: 'x'.repeat(129) }],
    ['a backend among the admin scopes', { scopes: ['orders'] }],
    ['all backends among the admin scopes', { scopes: ['*'] }],
    ['an admin scope among the backends', { backend_scopes: ['admin:agents:read'] }],
    ['the word admin among the backends', { backend_scopes: ['admin'] }],
    ['no scope', { scopes: ['admin::'] }],
    ['too many scopes', { scopes: Array.from({ length: 65 }, (_, n) => `admin:x${n}`) }],
    ['scopes that are a text', { scopes: 'admin:*' }],
    ['another field', { role: 'admin' }],
    ['an id', { id: `op_${'0'.repeat(26)}` }],
  ])('%s', async (_, change) => {
    const body = { email: 'good@example.com', scopes: ['admin:audit:read'], ...change }
    const reply = await app.local.post('/v1/admin/operators', body)
    expect([reply.status, reply.body.error?.code]).toEqual([400, 'invalid_request'])
    expect(reply.text).not.toContain('Alice')
    expect((await app.local.get('/v1/admin/operators/good@example.com')).status).toBe(404)
  })

  test.each(['%00', '%0a', 'x'.repeat(255), '..%2f..', "a@b.c'--", 'OP_1', '*'])(
    'named %s: nobody',
    async (named) => {
      const reply = await app.local.get(`/v1/admin/operators/${named}`)
      expect([400, 404]).toContain(reply.status)
    },
  )
})
