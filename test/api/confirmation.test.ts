import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES, type Route } from '../../src/api/routes.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { confirmationHeader, type Says } from '../support/authenticator.ts'
import { newPerson, type Person } from '../support/person.ts'

let app: TestApp
let alice: Person
let backend: string
beforeAll(async () => {
  app = await startApp()
  alice = await newPerson(app)
  backend = await app.newBackend()
})
afterAll(() => app.close())

const code = (reply: { body?: { error?: { code: string } } }) => reply.body?.error?.code
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0] as {
    actor: string
    details: Record<string, Record<string, string>>
  }

/** Asks, and returns the options of the challenge. */
async function ask(person: Person, method: string, path: string, body?: unknown) {
  const reply = await person.call(method, path, body)
  expect([path, reply.status, code(reply)]).toEqual([path, 403, 'confirmation_required'])
  return reply.body.error.options as { challenge: string; rpId: string; allowCredentials: { id: string }[] }
}

function confirm(person: Person, options: { challenge: string; rpId: string }, says: Says = {}) {
  return { 'mayfly-confirmation': confirmationHeader(person.authenticator.get(options, says)) }
}

async function enrollment(scopes: string[]): Promise<string> {
  const agent = await app.newAgent({ scopes: [backend] })
  return (await agent.client.post('/v1/request', { scopes })).body.id
}

describe('what an operator must confirm', () => {
  const agentNamed = async (scopes: string[] = []) => (await app.newAgent({ scopes })).name
  test.each<[string, () => Promise<[string, string, unknown?]>]>([
    ['ending an agent', async () => ['DELETE', `/v1/admin/agents/${await agentNamed()}`]],
    ['deleting a backend', async () => ['DELETE', `/v1/admin/backends/${await app.newBackend()}`]],
    ['rotating the keys', async () => ['POST', '/v1/admin/keys/rotate', { grace: '1h' }]],
    [
      'ending all that an agent has',
      async () => ['PATCH', `/v1/admin/agents/${await agentNamed([backend])}`, { scopes: [], revoke: true }],
    ],
    [
      'ending all credentials of an agent',
      async () => ['POST', '/v1/admin/tokens/revoke', { agent: await agentNamed([backend]) }],
    ],
    ['ending all of a backend', async () => ['POST', '/v1/admin/tokens/revoke', { backend }]],
    [
      'creating an agent with an admin scope',
      async () => ['POST', '/v1/admin/agents', { name: 'powerful', scopes: ['admin:audit:read'] }],
    ],
    [
      'giving one to an agent',
      async () => ['PATCH', `/v1/admin/agents/${await agentNamed()}`, { add_scopes: ['admin:agents:*'] }],
    ],
    [
      'giving one among others',
      async () => ['PATCH', `/v1/admin/agents/${await agentNamed()}`, { scopes: [backend, 'admin:*'] }],
    ],
    [
      'rotating the secrets of an agent with one',
      async () => ['POST', `/v1/admin/agents/${await agentNamed(['admin:audit:read'])}/rotate`],
    ],
    [
      'approving a request that contains one',
      async () => ['POST', `/v1/admin/pending/${await enrollment([backend, 'admin:audit:read'])}/approve`],
    ],
    [
      'approving with one that nobody asked for',
      async () => [
        'POST',
        `/v1/admin/pending/${await enrollment([backend])}/approve`,
        { scopes: ['admin:audit:read'] },
      ],
    ],
    [
      'inviting an operator',
      async () => ['POST', '/v1/admin/operators', { email: 'new@example.com', scopes: [] }],
    ],
    ['inviting one again', async () => ['POST', '/v1/admin/operators/new@example.com/invitation']],
    [
      'giving an operator an admin scope',
      async () => ['PATCH', '/v1/admin/operators/new@example.com', { scopes: ['admin:audit:read'] }],
    ],
    ['removing an operator', async () => ['DELETE', '/v1/admin/operators/new@example.com']],
  ])('%s', async (_, make) => {
    const [method, path, body] = await make()
    const options = await ask(alice, method, path, body)
    expect(options.allowCredentials).toEqual([
      { type: 'public-key', id: alice.authenticator.credentialId, transports: ['internal'] },
    ])
    const done = await alice.call(method, path, body, confirm(alice, options))
    expect([200, 202, 204]).toContain(done.status)
  })

  test.each<[string, () => Promise<[string, string, unknown?]>]>([
    ['creating an agent', async () => ['POST', '/v1/admin/agents', { name: 'weak', scopes: [backend] }]],
    [
      'an agent for a backend that is called adminer',
      async () => ['POST', '/v1/admin/agents', { name: 'weaker', scopes: ['adminer:x'] }],
    ],
    [
      'changing one',
      async () => ['PATCH', `/v1/admin/agents/${await agentNamed()}`, { add_scopes: [backend] }],
    ],
    [
      'taking an admin scope',
      async () => ['PATCH', `/v1/admin/agents/${await agentNamed(['admin:audit:read'])}`, { scopes: [] }],
    ],
    [
      'rotating the secrets of an agent without one',
      async () => ['POST', `/v1/admin/agents/${await agentNamed([backend])}/rotate`],
    ],
    [
      'approving a request without one',
      async () => ['POST', `/v1/admin/pending/${await enrollment([backend])}/approve`],
    ],
    [
      'approving without the one that was asked for',
      async () => [
        'POST',
        `/v1/admin/pending/${await enrollment(['admin:audit:read'])}/approve`,
        { scopes: [backend] },
      ],
    ],
    [
      'rejecting one',
      async () => ['POST', `/v1/admin/pending/${await enrollment(['admin:audit:read'])}/reject`],
    ],
    [
      'creating a backend',
      async () => ['POST', '/v1/admin/backends', { type: 'jwt', name: 'made', config: { audience: 'a' } }],
    ],
    ['the name of an operator', async () => ['PATCH', `/v1/admin/operators/${alice.id}`, { name: 'Alice' }]],
    ['reading', async () => ['GET', '/v1/admin/operators']],
  ])('not: %s', async (_, make) => {
    const [method, path, body] = await make()
    const reply = await alice.call(method, path, body)
    expect([reply.status, code(reply)]).toEqual([200, undefined])
  })

  test('not before it is refused for another reason', async () => {
    const weak = await newPerson(app, { scopes: ['admin:agents:*'], backend_scopes: [] })
    expect(code(await weak.call('DELETE', '/v1/admin/agents/nobody'))).toBe('agent_not_found')
    const all = await alice.call('POST', '/v1/admin/tokens/revoke', { agent: 'nobody' })
    expect(code(all)).toBe('agent_not_found')
    expect(code(await weak.call('POST', '/v1/admin/agents', { name: 'x', scopes: ['admin:*'] }))).toBe(
      'insufficient_scope',
    )
    expect(code(await weak.call('POST', '/v1/admin/operators', { email: 'x@y.z', scopes: [] }))).toBe(
      'insufficient_scope',
    )
  })

  test('agents and the local host confirm nothing, and a header of theirs is passed over', async () => {
    const agent = await app.newAgent({ scopes: ['admin:*', '*'] })
    const header = { 'mayfly-confirmation': 'nonsense' }
    expect(
      (await agent.client.post('/v1/admin/operators', { email: 'by-agent@example.com', scopes: [] }, header))
        .status,
    ).toBe(200)
    expect((await app.local.delete('/v1/admin/operators/by-agent@example.com', header)).status).toBe(204)
  })

  test('the table marks these routes, and no other', () => {
    const marked = Object.entries<Route>(ROUTES).filter(([, route]) => route.confirm === true)
    expect(marked.map(([name]) => name).sort()).toEqual([
      'DELETE /v1/admin/agents/:name',
      'DELETE /v1/admin/backends/:name',
      'DELETE /v1/admin/operators/:id',
      'DELETE /v1/admin/operators/:id/passkeys/:passkey',
      'PATCH /v1/admin/agents/:name',
      'PATCH /v1/admin/operators/:id',
      'POST /v1/admin/agents',
      'POST /v1/admin/agents/:name/rotate',
      'POST /v1/admin/keys/rotate',
      'POST /v1/admin/operators',
      'POST /v1/admin/operators/:id/invitation',
      'POST /v1/admin/pending/:id/approve',
      'POST /v1/admin/tokens/revoke',
      'POST /v1/console/commands/allow',
      'POST /v1/console/passkeys',
    ])
  })
})

describe('a confirmation', () => {
  const invite = (email: string) => ({ email, scopes: ['admin:audit:read'] })
  const PATH = '/v1/admin/operators'

  test('is for exactly one request', async () => {
    const body = invite('exact@example.com')
    const refused = async (method: string, path: string, other: unknown, says?: Says) => {
      const options = await ask(alice, 'POST', PATH, body)
      const reply = await alice.call(method, path, other, confirm(alice, options, says))
      expect([path, other, reply.status, code(reply)]).toEqual([path, other, 403, 'confirmation_required'])
      expect(reply.body.error.options.challenge).not.toBe(options.challenge)
    }
    await refused('POST', PATH, { ...body, scopes: ['admin:*'] })
    await refused('POST', PATH, { ...body, email: 'other@example.com' })
    await refused('POST', PATH, { ...body, name: 'X' })
    await refused('POST', `${PATH}/${alice.id}/invitation`, undefined)
    await refused('DELETE', `${PATH}/${alice.id}`, undefined)
    const same = { scopes: body.scopes, email: body.email }
    const options = await ask(alice, 'POST', PATH, body)
    // The same value with its members in another order is the same request.
    expect((await alice.call('POST', PATH, same, confirm(alice, options))).status).toBe(200)
  })

  test('is for the query, too', async () => {
    const name = await app.newBackend()
    const options = await ask(alice, 'DELETE', `/v1/admin/backends/${name}`)
    const other = await alice.call(
      'DELETE',
      `/v1/admin/backends/${name}?force=true`,
      undefined,
      confirm(alice, options),
    )
    expect(code(other)).toBe('confirmation_required')
  })

  test('works once, even where the act then fails, and within five minutes', async () => {
    const body = invite('once@example.com')
    const options = await ask(alice, 'POST', PATH, body)
    const header = confirm(alice, options)
    const both = await Promise.all([
      alice.call('POST', PATH, body, header),
      alice.call('POST', PATH, body, header),
    ])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 403])
    const again = await ask(alice, 'POST', PATH, body)
    expect(code(await alice.call('POST', PATH, body, confirm(alice, again)))).toBe('conflict')
    expect(code(await alice.call('POST', PATH, body, confirm(alice, again)))).toBe('confirmation_required')
    const late = await ask(alice, 'POST', PATH, invite('late@example.com'))
    app.advance(5 * 60_000)
    expect(code(await alice.call('POST', PATH, invite('late@example.com'), confirm(alice, late)))).toBe(
      'confirmation_required',
    )
  })

  test('belongs to the session that asked, and to the person', async () => {
    const bob = await newPerson(app)
    const body = invite('whose@example.com')
    const options = await ask(alice, 'POST', PATH, body)
    expect(code(await bob.call('POST', PATH, body, confirm(bob, options)))).toBe('confirmation_required')
    expect(code(await bob.call('POST', PATH, body, confirm(alice, options)))).toBe('confirmation_required')
    expect(code(await alice.call('POST', PATH, body, confirm(bob, options)))).toBe('confirmation_required')
    expect((await alice.call('POST', PATH, body, confirm(alice, options))).status).toBe(200)
  })

  test.each<[string, Says]>([
    ['of another origin', { origin: 'https://evil.test' }],
    ['for another relying party', { rpId: 'evil.test' }],
    ['without user verification', { flags: 1 }],
    ['for a challenge of our choice', { challenge: createHash('sha256').update('x').digest('base64url') }],
    ['for a registration', { type: 'webauthn.create' }],
    ['of another user', { userHandle: 'b3BfeA' }],
  ])('%s is refused', async (_, says) => {
    const carl = await newPerson(app)
    const body = invite('hostile@example.com')
    const options = await ask(carl, 'POST', PATH, body)
    expect(code(await carl.call('POST', PATH, body, confirm(carl, options, says)))).toBe(
      'confirmation_required',
    )
  })

  test.each([
    ['empty', ''],
    ['no base64url', '{}'],
    ['no JSON', 'AAAA'],
    ['a list', Buffer.from('[]').toString('base64url')],
    ['null', Buffer.from('null').toString('base64url')],
    ['without an answer', Buffer.from('{"id":"a","rawId":"a","type":"public-key"}').toString('base64url')],
    ['too long', 'A'.repeat(9_000)],
    [
      'with numbers',
      Buffer.from('{"id":1,"rawId":1,"type":1,"response":{"clientDataJSON":1}}').toString('base64url'),
    ],
  ])('that is %s is refused', async (_, header) => {
    const dora = await newPerson(app)
    const reply = await dora.call('POST', PATH, invite('x@example.com'), { 'mayfly-confirmation': header })
    expect(code(reply)).toBe('confirmation_required')
  })

  test('a challenge of a login or a registration confirms nothing', async () => {
    const body = invite('mixed@example.com')
    const { options } = (await alice.call('POST', '/v1/console/login/options')).body
    expect(code(await alice.call('POST', PATH, body, confirm(alice, options)))).toBe('confirmation_required')
    const begun = (await alice.call('POST', '/v1/console/passkeys/options')).body.options
    const other = { challenge: begun.challenge, rpId: begun.rp.id }
    expect(code(await alice.call('POST', PATH, body, confirm(alice, other)))).toBe('confirmation_required')
  })

  test('without a passkey there is nothing to sign', async () => {
    const eve = await newPerson(app, { passkey: false })
    const { error } = (await eve.call('POST', PATH, invite('x@example.com'))).body
    expect([error.code, error.options]).toEqual(['confirmation_required', {}])
    expect(error.message).toContain('register one first')
  })

  test('ten refused ones a minute', async () => {
    const eve = await newPerson(app)
    const header = { 'mayfly-confirmation': 'AAAA' }
    for (let n = 0; n < 10; n += 1) await eve.call('POST', PATH, invite('x@example.com'), header)
    expect(code(await eve.call('POST', PATH, invite('x@example.com'), header))).toBe('rate_limited')
  })

  test('the entry keeps what shows that this person confirmed these bytes; agents do not see it', async () => {
    app.advance(60_000)
    const agent = await app.newAgent({ scopes: [backend] })
    const path = `/v1/admin/agents/${agent.name}`
    const body = { add_scopes: ['admin:plugins:write'], description: 'a secret remark' }
    expect((await alice.act('PATCH', path, body)).status).toBe(200)
    const entry = await newest('agent.scopes_changed')
    expect(entry.actor).toBe(`operator:${alice.email}`)
    const { confirmation } = entry.details
    expect(JSON.parse(confirmation?.['request'] ?? '')).toEqual({
      method: 'PATCH',
      path,
      body,
      nonce: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      time: expect.stringMatching(/Z$/),
    })
    const { challenge } = JSON.parse(
      Buffer.from(confirmation?.['clientDataJson'] ?? '', 'base64url').toString(),
    )
    expect(
      createHash('sha256')
        .update(confirmation?.['request'] ?? '')
        .digest('base64url'),
    ).toBe(challenge)
    const own = await agent.client.get('/api/v1/audit?action=agent.scopes_changed')
    expect(own.body.entries[0].details.added).toEqual(['admin:plugins:write'])
    expect(own.text).not.toContain('confirmation')
    expect(app.logged()).not.toMatch(/mf[skl]_[0-9a-f]{8}/)
  })
})
