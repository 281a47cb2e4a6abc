import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { startApp, type TestApp } from '../support/app.ts'
import {
  allow,
  answerIn,
  beginDevice,
  CLIENT,
  commandByBrowser,
  commandByCode,
  deny,
  look,
  newBrowserLogin,
  pollDevice,
  redeem,
} from '../support/command.ts'
import { newPerson, type Person } from '../support/person.ts'

const USER_CODE = /^[23456789BCDFGHJKMNPQRSTVWXZ]{4}-[23456789BCDFGHJKMNPQRSTVWXZ]{4}$/

describe.each(['sqlite', 'postgres'] as const)('on %s', (dialect) => {
  let app: TestApp
  let alice: Person
  beforeAll(async () => {
    app = await startApp({ dialect })
    alice = await newPerson(app)
  })
  afterAll(() => app.close())

  const newest = async (action: string) =>
    (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]
  /** Ten logins begin in a minute at one address. */
  const begin = async (host = 'laptop') => {
    app.advance(MINUTE_MS / 10)
    return (await beginDevice(app, { client_id: CLIENT, host })).body
  }

  describe('a device', () => {
    test('begins, is looked at and allowed, and gets its token', async () => {
      const begun = await beginDevice(app)
      expect(begun.headers.get('cache-control')).toBe('no-store')
      expect(begun.body).toEqual({
        device_code: expect.stringMatching(/^mdc_[0-9a-f]{64}$/),
        user_code: expect.stringMatching(USER_CODE),
        verification_uri: 'https://mayfly.test/console/allow',
        expires_in: 600,
        interval: 5,
      })
      const { device_code, user_code } = begun.body
      const pending = await pollDevice(app, device_code)
      expect([pending.status, pending.body.error]).toEqual([400, 'authorization_pending'])
      const typed = user_code.toLowerCase().replace('-', ' ')
      const seen = await look(alice, { user_code: typed })
      expect(seen.body).toEqual({
        kind: 'device',
        host: 'laptop',
        ip_address: '127.0.0.1',
        user_agent: 'mayfly/test',
        redirect_uri: null,
        requested_at: expect.any(String),
        expires_at: expect.any(String),
      })
      expect((await alice.call('POST', '/v1/console/commands/allow', { user_code })).body.error.code).toBe(
        'confirmation_required',
      )
      const allowed = await allow(alice, { user_code })
      expect([allowed.status, allowed.body]).toEqual([200, {}])
      expect(await newest('session.allowed')).toMatchObject({
        actor: `operator:${alice.email}`,
        details: {
          method: 'device',
          host: 'laptop',
          ip_address: '127.0.0.1',
          confirmation: { request: expect.stringContaining(user_code) },
        },
      })
      const got = await pollDevice(app, device_code)
      expect(got.headers.get('cache-control')).toBe('no-store')
      expect(got.body).toEqual({
        access_token: expect.stringMatching(/^mop_[0-9a-f]{64}$/),
        token_type: 'Bearer',
        expires_in: expect.any(Number),
        scope: 'admin:* *',
      })
      const me = (await app.as(got.body.access_token).get('/v1/admin/me')).body
      expect(me).toMatchObject({ kind: 'operator', email: alice.email, session: { method: 'device' } })
      const own = (await alice.call('GET', '/v1/admin/me')).body.session
      expect(await newest('session.started')).toMatchObject({
        actor: `operator:${alice.email}`,
        auth_method: 'operator_token',
        details: {
          operator_id: alice.id,
          session_id: me.session.id,
          method: 'device',
          host: 'laptop',
          allowed_by: own.id,
        },
      })
      const { body } = await app.local.get(`/v1/admin/sessions?operator=${alice.id}`)
      expect(body.find(({ id }: { id: string }) => id === me.session.id)).toMatchObject({
        method: 'device',
        host: 'laptop',
        allowed_by: own.id,
        user_agent: 'mayfly/test',
      })
    })

    test('a poll that is early is told to slow down, each time by five seconds more', async () => {
      const { device_code } = await begin()
      const ask = async () => (await pollDevice(app, device_code)).body.error
      expect(await ask()).toBe('authorization_pending')
      expect(await ask()).toBe('slow_down')
      app.advance(6_000)
      expect(await ask()).toBe('slow_down')
      app.advance(15_000)
      expect(await ask()).toBe('authorization_pending')
      app.advance(5_000)
      expect(await ask()).toBe('slow_down')
    })

    test('many polls at once are one', async () => {
      const { device_code } = await begin()
      const replies = await Promise.all(Array.from({ length: 8 }, () => pollDevice(app, device_code)))
      const errors = replies.map(({ body }) => body.error)
      expect(errors.filter((one) => one === 'authorization_pending').length).toBeLessThanOrEqual(1)
      expect(errors.every((one) => one === 'authorization_pending' || one === 'slow_down')).toBe(true)
    })

    test('denied', async () => {
      const { device_code, user_code } = await begin()
      expect((await deny(alice, { user_code })).body).toEqual({})
      expect((await pollDevice(app, device_code)).body.error).toBe('access_denied')
      expect(await newest('session.denied')).toMatchObject({ details: { host: 'laptop' } })
      expect((await allow(alice, { user_code })).status).toBe(404)
    })

    test('unknown, used and late codes have one answer', async () => {
      const { device_code, user_code } = await begin()
      await allow(alice, { user_code })
      expect((await pollDevice(app, device_code)).status).toBe(200)
      const late = await begin()
      const allowedLate = await begin()
      await allow(alice, { user_code: allowedLate.user_code })
      app.advance(10 * MINUTE_MS)
      const answers = await Promise.all(
        [device_code, late.device_code, allowedLate.device_code, `mdc_${'0'.repeat(64)}`, 'x'].map((code) =>
          pollDevice(app, code),
        ),
      )
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
      expect(answers[0]?.body.error).toBe('expired_token')
    })

    test('a typed code that is unknown, late, used, or no code, has one answer', async () => {
      const used = await begin()
      await allow(alice, { user_code: used.user_code })
      const late = await begin()
      app.advance(10 * MINUTE_MS)
      alice = await newPerson(app)
      for (const act of [look, allow, deny]) {
        app.advance(MINUTE_MS)
        const answers = []
        for (const user_code of [used.user_code, late.user_code, 'BCDF-2345', 'AEIO-0000', 'ſſſſ-ſſſſ'])
          answers.push(await act(alice, { user_code }))
        expect(new Set(answers.map(({ status, body }) => `${status} ${body.error.message}`)).size).toBe(1)
        expect(answers[0]?.status).toBe(404)
      }
    })

    test('a code on two at once, or typed by two at once, counts once', async () => {
      const { device_code, user_code } = await begin()
      const bob = await newPerson(app)
      const typed = await Promise.all([allow(alice, { user_code }), allow(bob, { user_code })])
      expect(typed.map(({ status }) => status).sort()).toEqual([200, 404])
      const replies = await Promise.all(Array.from({ length: 6 }, () => pollDevice(app, device_code)))
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    })
  })

  describe('a browser', () => {
    test('looks, allows, and sends back a code for the token', async () => {
      const login = newBrowserLogin()
      expect((await look(alice, { request: login.request })).body).toEqual({
        kind: 'browser',
        host: 'laptop',
        redirect_uri: login.redirectUri,
        ip_address: null,
        user_agent: null,
        requested_at: null,
        expires_at: null,
      })
      const allowed = await allow(alice, { request: login.request })
      expect(allowed.body.redirect_to.startsWith(`${login.redirectUri}?`)).toBe(true)
      expect(answerIn(allowed)).toEqual({
        code: expect.stringMatching(/^mac_[0-9a-f]{64}$/),
        state: login.state,
        iss: 'https://mayfly.test',
      })
      const got = await redeem(app, login, answerIn(allowed)['code'] ?? '')
      expect(got.body).toMatchObject({ token_type: 'Bearer', scope: 'admin:* *' })
      const me = (await app.as(got.body.access_token).get('/v1/admin/me')).body
      expect(me.session.method).toBe('browser')
      expect(me.operations).toContain('listAgents')
      expect(me.operations).not.toContain('allowCommandLogin')
    })

    test('denies', async () => {
      const login = newBrowserLogin()
      const denied = await deny(alice, { request: login.request })
      expect(answerIn(denied)).toEqual({
        error: 'access_denied',
        state: login.state,
        iss: 'https://mayfly.test',
      })
    })

    test('a code works once: its second use ends what the first began', async () => {
      const login = newBrowserLogin()
      const { code = '' } = answerIn(await allow(alice, { request: login.request }))
      const first = await redeem(app, login, code)
      const client = app.as(first.body.access_token)
      expect((await client.get('/v1/admin/me')).status).toBe(200)
      app.advance(HOUR_MS / 3)
      const second = await redeem(app, login, code, { code_verifier: 'a'.repeat(43) })
      expect([second.status, second.body.error]).toEqual([400, 'invalid_grant'])
      expect((await client.get('/v1/admin/me')).status).toBe(401)
      expect(await newest('session.ended')).toMatchObject({
        actor: 'system',
        details: { reason: 'code_used_again', operator_id: alice.id },
      })
      expect((await redeem(app, login, code)).body.error).toBe('invalid_grant')
    })

    test('a code that comes twice at once leaves no session', async () => {
      const login = newBrowserLogin()
      const { code = '' } = answerIn(await allow(alice, { request: login.request }))
      const replies = await Promise.all([redeem(app, login, code), redeem(app, login, code)])
      const [good, bad] = replies.sort((a, b) => a.status - b.status)
      expect([good?.status, bad?.status, bad?.body.error]).toEqual([200, 400, 'invalid_grant'])
      expect((await app.as(good?.body.access_token).get('/v1/admin/me')).status).toBe(401)
    })

    test.each<[string, Record<string, string>, string]>([
      ['another verifier', { code_verifier: 'b'.repeat(43) }, 'invalid_grant'],
      ['a short verifier', { code_verifier: 'b' }, 'invalid_grant'],
      ['another port', { redirect_uri: 'http://127.0.0.1:49153/callback' }, 'invalid_grant'],
      ['another path', { redirect_uri: 'http://127.0.0.1:49152/' }, 'invalid_grant'],
      ['another client', { client_id: 'other' }, 'invalid_client'],
      ['the client of an agent', { client_id: `agent_${'0'.repeat(26)}` }, 'invalid_client'],
      ['a client with a secret', { client_secret: `cks_${'0'.repeat(64)}` }, 'unauthorized_client'],
    ])('a code with %s is refused, and the command can still use it', async (_, change, error) => {
      const login = newBrowserLogin()
      const { code = '' } = answerIn(await allow(alice, { request: login.request }))
      expect((await redeem(app, login, code, change)).body.error).toBe(error)
      expect((await redeem(app, login, code)).status).toBe(200)
    })

    test('a code is late after a minute', async () => {
      const login = newBrowserLogin()
      const { code = '' } = answerIn(await allow(alice, { request: login.request }))
      app.advance(MINUTE_MS)
      expect((await redeem(app, login, code)).body.error).toBe('invalid_grant')
    })

    test('codes of one grant are none of the other', async () => {
      const login = newBrowserLogin()
      const { code = '' } = answerIn(await allow(alice, { request: login.request }))
      expect((await pollDevice(app, code)).body.error).toBe('expired_token')
      const { device_code, user_code } = await begin()
      await allow(alice, { user_code })
      expect((await redeem(app, login, device_code)).body.error).toBe('invalid_grant')
      expect((await pollDevice(app, device_code)).status).toBe(200)
    })
  })

  test('both reach what operators reach, and never issue', async () => {
    await app.newBackend({ name: 'orders' })
    for (const command of [await commandByCode(app, alice), await commandByBrowser(app, alice)]) {
      const { client } = command
      expect((await client.get('/v1/admin/agents')).status).toBe(200)
      expect((await client.get('/api/v1/backends')).status).toBe(200)
      expect((await client.get('/api/v1/audit')).status).toBe(200)
      for (const [method, path] of [
        ['post', '/api/v1/credentials'],
        ['post', '/v1/credentials/orders'],
        ['get', '/v1/credentials/orders'],
        ['get', '/v1/status'],
        ['get', '/v1/signing-key'],
        ['post', '/v1/sign'],
        ['post', '/v1/console/logout'],
        ['post', '/v1/console/commands/allow'],
      ] as const)
        expect([
          path,
          (await client[method](path, method === 'post' ? ({} as never) : undefined)).status,
        ]).toEqual([path, 401])
      expect((await client.delete(`/v1/admin/sessions/${command.id}`)).status).toBe(204)
      expect((await client.get('/v1/admin/me')).status).toBe(401)
    }
  })
})
