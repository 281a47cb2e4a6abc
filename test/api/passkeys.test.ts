import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { attestationObject, createAuthenticator, type Says } from '../support/authenticator.ts'
import { callAsPage, enter, linkOf, logInAgain, newPerson, type Person } from '../support/person.ts'

let app: TestApp
let alice: Person
beforeAll(async () => {
  app = await startApp()
  alice = await newPerson(app)
})
afterAll(() => app.close())

const ME = '/v1/admin/me'
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0] as {
    actor: string
    details: Record<string, unknown>
  }
const answerOf = () =>
  createAuthenticator('https://mayfly.test').get(
    { challenge: 'x', rpId: 'mayfly.test' },
    { userHandle: null },
  )

describe('passkeys', () => {
  test('log in without saying who it is, and are shown with their name', async () => {
    const bob = await newPerson(app)
    const again = await logInAgain(app, bob)
    expect((await again.call('GET', ME)).body).toMatchObject({
      id: bob.id,
      session: { may_register_until: null },
    })
    const [passkey, ...none] = (await again.call('GET', `/v1/admin/operators/${bob.id}/passkeys`)).body
    expect(none).toEqual([])
    expect(passkey).toMatchObject({
      name: 'laptop',
      backup: 'none',
      works_here: true,
      last_used: expect.any(String),
    })
    expect(await newest('session.started')).toMatchObject({
      actor: `operator:${bob.email}`,
      details: { method: 'passkey', passkey_id: passkey.id },
    })
  })

  test.each<[string, Says]>([
    ['of another origin', { origin: 'https://evil.test' }],
    ['of another port', { origin: 'https://mayfly.test:8443' }],
    ['over plain HTTP', { origin: 'http://mayfly.test' }],
    ['for another relying party', { rpId: 'evil.test' }],
    [
      'for a challenge of somebody else',
      { challenge: Buffer.from('1700000000000.x.y').toString('base64url') },
    ],
    ['without user verification', { flags: 1 }],
    ['without anybody present', { flags: 4 }],
    ['for a registration', { type: 'webauthn.create' }],
    ['in a frame of another page', { crossOrigin: true, topOrigin: 'https://evil.test' }],
    ['with a counter that went back', { counter: 0 }],
    ['of another user', { userHandle: Buffer.from('op_x').toString('base64url') }],
    ['without a user', { userHandle: null }],
    ['of an unknown credential', { id: 'dW5rbm93bg' }],
  ])('an assertion %s is refused', async (_, says) => {
    const bob = await newPerson(app)
    const { options } = (await callAsPage(app, 'POST', '/v1/console/login/options')).body
    const assertion = bob.authenticator.get(options, says)
    const reply = await callAsPage(app, 'POST', '/v1/console/login/passkey', { assertion })
    expect([reply.status, reply.body.error.code]).toEqual([401, 'unauthorized'])
    expect(reply.body.error.message).toBe('The passkey was not accepted.')
    expect(reply.headers.get('set-cookie')).toBeNull()
    await logInAgain(app, bob)
  })

  test('an assertion works once, with its own signature, and within five minutes', async () => {
    const bob = await newPerson(app)
    const begin = async () => (await callAsPage(app, 'POST', '/v1/console/login/options')).body.options
    const send = (assertion: unknown) => callAsPage(app, 'POST', '/v1/console/login/passkey', { assertion })
    const options = await begin()
    const assertion = bob.authenticator.get(options)
    expect((await send(assertion)).status).toBe(200)
    expect((await send(assertion)).status).toBe(401)
    // Another answer to a challenge that was answered.
    expect((await send(bob.authenticator.get(options))).status).toBe(401)
    const { response } = bob.authenticator.get(await begin())
    const forged = bob.authenticator.get(await begin())
    expect(
      (await send({ ...forged, response: { ...forged.response, signature: response.signature } })).status,
    ).toBe(401)
    const late = bob.authenticator.get(await begin())
    app.advance(5 * 60_000)
    expect((await send(late)).status).toBe(401)
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a text', 'x'],
    ['no response', { id: 'a', rawId: 'a', type: 'public-key' }],
    ['padded base64', { ...answerOf(), id: 'aa==' }],
    ['another type', { ...answerOf(), type: 'password' }],
    [
      'client data that is no JSON',
      { ...answerOf(), response: { ...answerOf().response, clientDataJSON: 'AAAA' } },
    ],
    ['another member', { ...answerOf(), extra: 1 }],
    ['a number', { ...answerOf(), rawId: 5 }],
  ])('an assertion that is %s is refused', async (_, assertion) => {
    const reply = await callAsPage(app, 'POST', '/v1/console/login/passkey', { assertion })
    expect([400, 401]).toContain(reply.status)
  })

  test('a session of a link registers one in its first ten minutes; then a passkey confirms it', async () => {
    const bob = await newPerson(app, { passkey: false })
    expect((await bob.register('first')).status).toBe(200)
    const second = createAuthenticator('https://mayfly.test')
    const begun = async () => (await bob.call('POST', '/v1/console/passkeys/options')).body.options
    const options = await begun()
    expect(options.excludeCredentials.map(({ id }: { id: string }) => id)).toEqual([
      bob.authenticator.credentialId,
    ])
    const body = { name: 'second', registration: second.create(options) }
    expect((await bob.call('POST', '/v1/console/passkeys', body)).body.error.code).toBe(
      'confirmation_required',
    )
    expect((await bob.act('POST', '/v1/console/passkeys', body)).status).toBe(200)
    const late = await newPerson(app, { passkey: false })
    app.advance(10 * 60_000)
    const refused = (await late.register()).body.error
    expect([refused.code, refused.options]).toEqual(['confirmation_required', {}])
  })

  test('two registrations at once on one permission: one is kept', async () => {
    const bob = await newPerson(app, { passkey: false })
    const both = [createAuthenticator('https://mayfly.test'), createAuthenticator('https://mayfly.test')]
    const bodies = await Promise.all(
      both.map(async (one, n) => {
        const { options } = (await bob.call('POST', '/v1/console/passkeys/options')).body
        return { name: `key ${n}`, registration: one.create(options) }
      }),
    )
    const replies = await Promise.all(bodies.map((body) => bob.call('POST', '/v1/console/passkeys', body)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await bob.call('GET', `/v1/admin/operators/${bob.id}/passkeys`)).body).toHaveLength(1)
  })

  const deep = Buffer.concat([Buffer.alloc(12_000, 0x81), Buffer.from([0xa0])])
  // A statement with certificates: {alg: -7, sig: h'', x5c: [h'']}.
  const certified = Buffer.from('a363616c672663736967406378356381 40'.replace(/ /g, ''), 'hex')
  test.each<[string, Says]>([
    ['of another origin', { origin: 'https://evil.test' }],
    ['for another relying party', { rpId: 'evil.test' }],
    ['for the challenge of nobody', { challenge: 'AAAA' }],
    ['without user verification', { flags: 0x41 }],
    ['without a credential', { flags: 5 }],
    ['for a login', { type: 'webauthn.get' }],
    ['that is nested deeply', { attestation: deep }],
    ['that is no CBOR', { attestation: Buffer.from('nonsense') }],
    [
      'with certificates, whose lists nobody fetches',
      { attestation: attestationObject(Buffer.alloc(200), 'packed', certified) },
    ],
    [
      'of a format that we did not ask for',
      { attestation: attestationObject(Buffer.alloc(200), 'android-safetynet') },
    ],
  ])('a registration %s is refused', async (_, says) => {
    const bob = await newPerson(app, { passkey: false })
    const { options } = (await bob.call('POST', '/v1/console/passkeys/options')).body
    const registration = bob.authenticator.create(options, says)
    const reply = await bob.call('POST', '/v1/console/passkeys', { name: 'x', registration })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    expect((await bob.call('GET', `/v1/admin/operators/${bob.id}/passkeys`)).body).toEqual([])
  })

  test('a registration is for the session that began it, and for one operator', async () => {
    const [bob, eve] = [await newPerson(app, { passkey: false }), await newPerson(app, { passkey: false })]
    const { options } = (await bob.call('POST', '/v1/console/passkeys/options')).body
    const body = { name: 'x', registration: bob.authenticator.create(options) }
    expect((await eve.call('POST', '/v1/console/passkeys', body)).status).toBe(400)
    expect((await bob.call('POST', '/v1/console/passkeys', body)).status).toBe(200)
    expect((await bob.call('POST', '/v1/console/passkeys', body)).status).toBe(403)
    const known = (await eve.call('POST', '/v1/console/passkeys/options')).body.options
    const stolen = { name: 'x', registration: bob.authenticator.create(known) }
    expect((await eve.call('POST', '/v1/console/passkeys', stolen)).body.error.code).toBe('conflict')
    for (const name of ['', 'a\nb', '\u202e', 'x'.repeat(129)])
      expect((await eve.call('POST', '/v1/console/passkeys', { ...stolen, name })).status).toBe(400)
  })

  test('removing one ends the sessions that it started', async () => {
    const bob = await newPerson(app)
    const again = await logInAgain(app, bob)
    const path = `/v1/admin/operators/${bob.id}/passkeys`
    const [passkey] = (await bob.call('GET', path)).body
    expect((await bob.call('DELETE', `${path}/${passkey.id}`)).body.error.code).toBe('confirmation_required')
    expect((await bob.act('DELETE', `${path}/${passkey.id}`)).status).toBe(204)
    expect([(await bob.call('GET', ME)).status, (await again.call('GET', ME)).status]).toEqual([200, 401])
    await expect(logInAgain(app, bob)).rejects.toThrow('not accepted')
    expect((await bob.act('DELETE', `${path}/${passkey.id}`)).status).toBe(404)
    const eve = await newPerson(app, { scopes: [], backend_scopes: [] })
    const [own] = (await alice.call('GET', `/v1/admin/operators/${alice.id}/passkeys`)).body
    expect((await eve.act('DELETE', `/v1/admin/operators/${alice.id}/passkeys/${own.id}`)).status).toBe(403)
  })

  test('who lost theirs gets a link from another operator or the socket, and registers a new one', async () => {
    const bob = await newPerson(app)
    const { invitation } = (await alice.act('POST', `/v1/admin/operators/${bob.id}/invitation`)).body
    const back = await enter(app, linkOf(invitation.url), bob)
    expect((await back.register('new phone')).status).toBe(200)
    const { url } = (await app.local.post('/v1/admin/console/links', { operator: bob.email })).body
    const again = await enter(app, linkOf(url), bob)
    expect((await again.register('another')).status).toBe(200)
  })
})

test('a server under a new address warns at its start of the passkeys that it does not know any more', async () => {
  const first = await startApp({ argv: { issuer: 'https://old.test' } })
  const bob = await newPerson(first)
  await first.app.close()
  const second = await startApp({ argv: { issuer: 'https://new.test', dataDir: first.directory } })
  expect(second.logged()).toMatch(/"passkeys":1,"host":"new\.test".*registered for another address/)
  const [shown] = (await second.local.get(`/v1/admin/operators/${bob.id}/passkeys`)).body
  expect(shown.works_here).toBe(false)
  await second.close()
  await rm(first.directory, { recursive: true })
})
