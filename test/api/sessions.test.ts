import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES, type Route } from '../../src/api/routes.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { createAuthenticator } from '../support/authenticator.ts'
import { callAsPage, linkOf, logInAgain, newPerson, type Person } from '../support/person.ts'

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
    outcome: string
    details: Record<string, unknown>
  }

describe('a request of a browser', () => {
  test('the cookie is for this host alone, and the page has a key of its own', async () => {
    const { url } = (await app.local.post(`/v1/admin/operators/${alice.id}/invitation`)).body.invitation
    const reply = await callAsPage(app, 'POST', '/v1/console/login/link', { link: linkOf(url) })
    expect(reply.headers.get('set-cookie')).toMatch(
      /^__Host-mayfly=mfs_[0-9a-f]{64}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    )
    expect(reply.body).toEqual({
      key: expect.stringMatching(/^mfk_[0-9a-f]{64}$/),
      expires_at: expect.any(String),
    })
    expect(reply.headers.get('cache-control')).toBe('no-store')
  })

  const refusals: [string, (person: Person, other: Person) => Record<string, string>][] = [
    ['without the cookie', ({ key }) => ({ 'mayfly-console': key })],
    [
      'with a cookie of another name',
      ({ cookie, key }) => ({ cookie: cookie.replace('__Host-', ''), 'mayfly-console': key }),
    ],
    ['with two cookies', ({ cookie, key }) => ({ cookie: `${cookie}; ${cookie}`, 'mayfly-console': key })],
    ['with an empty cookie', ({ key }) => ({ cookie: '__Host-mayfly=', 'mayfly-console': key })],
    [
      'with a cookie in capitals',
      ({ cookie, key }) => ({ cookie: cookie.toUpperCase(), 'mayfly-console': key }),
    ],
    ['with a longer cookie', ({ cookie, key }) => ({ cookie: `${cookie}0`, 'mayfly-console': key })],
    [
      'with a quoted cookie',
      ({ cookie, key }) => ({ cookie: cookie.replace(/=(.*)/, '="$1"'), 'mayfly-console': key }),
    ],
    ['with the key of another session', ({ cookie }, { key }) => ({ cookie, 'mayfly-console': key })],
    [
      'with the cookie as the key',
      ({ cookie }) => ({ cookie, 'mayfly-console': cookie.split('=')[1] ?? '' }),
    ],
    ['with an empty key', ({ cookie }) => ({ cookie, 'mayfly-console': '' })],
    ['with the key twice', ({ cookie, key }) => ({ cookie, 'mayfly-console': `${key}, ${key}` })],
    ['from the same site', (person) => ({ ...person.headers(), 'sec-fetch-site': 'same-site' })],
    ['from another site', (person) => ({ ...person.headers(), 'sec-fetch-site': 'cross-site' })],
    ['typed into the address bar', (person) => ({ ...person.headers(), 'sec-fetch-site': 'none' })],
    ['with two sites', (person) => ({ ...person.headers(), 'sec-fetch-site': 'same-origin, same-origin' })],
  ]
  test.each(refusals)('%s is refused', async (_, headers) => {
    const other = await newPerson(app, { passkey: false })
    const reply = await callAsPage(app, 'GET', ME, undefined, headers(alice, other))
    expect([reply.status, reply.body.error.code]).toEqual([401, 'unauthorized'])
    expect((await alice.call('GET', ME)).status).toBe(200)
  })

  test('the cookie alone opens nothing, and a browser is never the local host', async () => {
    const reply = await callAsPage(app, 'GET', ME, undefined, { cookie: alice.cookie })
    expect(reply.status).toBe(401)
  })

  test('a session of another browser never falls back to the trust of the local host', async () => {
    const { host } = new URL(app.url)
    const headers = { host, 'mayfly-console': 'mfk_x' }
    expect((await app.raw({ path: ME, headers })).status).toBe(401)
    expect((await app.raw({ path: ME, headers: { host } })).status).toBe(200)
  })

  test('a bearer beside it decides alone', async () => {
    const agent = await app.newAgent()
    const both = { ...alice.headers(), authorization: `Bearer ${agent.token}` }
    expect((await callAsPage(app, 'GET', ME, undefined, both)).body).toMatchObject({
      kind: 'agent',
      id: agent.id,
    })
    const bad = { ...alice.headers(), authorization: 'Bearer nonsense' }
    expect((await callAsPage(app, 'GET', ME, undefined, bad)).status).toBe(401)
  })

  test('no route of agents takes a session', async () => {
    for (const [name, { access }] of Object.entries<Route>(ROUTES)) {
      if (access !== 'agent') continue
      const [method = '', path = ''] = name.split(' ')
      const reply = await alice.call(method, path.replace(/:\w+/g, 'x'))
      expect([name, reply.status]).toEqual([name, 401])
    }
  })

  test.each(['options', 'passkey', 'link'])('a login by %s is only for the own page', async (way) => {
    for (const site of ['cross-site', 'same-site', 'none', '']) {
      const body =
        way === 'options' ? undefined : way === 'link' ? { link: 'mfl_x' } : { assertion: answerOf() }
      const reply = await callAsPage(app, 'POST', `/v1/console/login/${way}`, body, {
        'sec-fetch-site': site,
      })
      expect([site, reply.body.error.code]).toEqual([site, 'not_allowed'])
    }
  })
})

const answerOf = () =>
  createAuthenticator('https://mayfly.test').get(
    { challenge: 'x', rpId: 'mayfly.test' },
    { userHandle: null },
  )

describe('the life of a session', () => {
  test('logging out ends it, and clears the cookie', async () => {
    const bob = await newPerson(app, { passkey: false })
    const reply = await bob.call('POST', '/v1/console/logout')
    expect(reply.status).toBe(204)
    expect(reply.headers.get('set-cookie')).toBe(
      '__Host-mayfly=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure',
    )
    expect(reply.headers.get('clear-site-data')).toBe('"cache", "storage"')
    expect((await bob.call('GET', ME)).status).toBe(401)
    expect((await bob.call('POST', '/v1/console/logout')).status).toBe(401)
    expect(await newest('session.ended')).toMatchObject({
      actor: `operator:${bob.email}`,
      details: { reason: 'logout', operator_id: bob.id, actor_id: bob.id },
    })
  })

  test('30 minutes without use, and 12 hours with it', async () => {
    const own = await startApp()
    const idle = await newPerson(own, { passkey: false })
    own.advance(29 * 60_000)
    expect((await idle.call('GET', ME)).status).toBe(200)
    own.advance(29 * 60_000)
    expect((await idle.call('GET', ME)).status).toBe(200)
    own.advance(30 * 60_000)
    expect((await idle.call('GET', ME)).status).toBe(401)
    const busy = await newPerson(own, { passkey: false })
    for (let minutes = 25; minutes < 12 * 60; minutes += 25) {
      own.advance(25 * 60_000)
      expect([minutes, (await busy.call('GET', ME)).status]).toEqual([minutes, 200])
    }
    own.advance(20 * 60_000)
    expect((await busy.call('GET', ME)).status).toBe(401)
    await own.close()
  })

  test('the last use is written once a minute', async () => {
    const bob = await newPerson(app, { passkey: false })
    const own = async () => (await bob.call('GET', '/v1/admin/sessions')).body
    const mine = (list: { current: boolean; last_used: string }[]) =>
      list.find(({ current }) => current)?.last_used
    const first = mine(await own())
    app.advance(30_000)
    expect(mine(await own())).toBe(first)
    app.advance(31_000)
    await own()
    expect(Date.parse(mine(await own()) ?? '')).toBeGreaterThanOrEqual(Date.parse(first ?? '') + 60_000)
  })

  test('while the store cannot be written, reading goes on, and nothing is changed or confirmed', async () => {
    const own = await startApp()
    const bob = await newPerson(own)
    own.advance(2 * 60_000)
    const { commit } = own.core.store
    const { StoreError } = await import('../../src/store/errors.ts')
    own.core.store.commit = () => Promise.reject(new StoreError('the disk is full'))
    expect((await bob.call('GET', ME)).status).toBe(200)
    expect((await bob.call('GET', '/v1/admin/agents')).status).toBe(200)
    const refused = await bob.call('DELETE', `/v1/admin/operators/${bob.id}`)
    expect([409, 503]).toContain(refused.status)
    expect((await bob.call('POST', '/v1/admin/agents', { name: 'x' })).status).toBe(503)
    own.core.store.commit = commit
    expect((await bob.call('GET', ME)).status).toBe(200)
    await own.close()
  })

  test('an operator has 20; one more ends the oldest, also when many come at once', async () => {
    const bob = await newPerson(app)
    const more: Person[] = []
    for (let n = 0; n < 19; n += 1) more.push(await logInAgain(app, bob))
    expect((await bob.call('GET', ME)).status).toBe(200)
    await logInAgain(app, bob)
    expect((await bob.call('GET', ME)).status).toBe(401)
    expect((await more[0]?.call('GET', ME))?.status).toBe(200)
    expect(await newest('session.ended')).toMatchObject({ details: { reason: 'too_many' } })
    const sessions = (await app.local.get(`/v1/admin/sessions?operator=${bob.id}`)).body
    expect(sessions).toHaveLength(20)
  })

  test('an administrator ends one session, or all of an operator', async () => {
    const bob = await newPerson(app)
    const second = await logInAgain(app, bob)
    const [first] = (await app.local.get(`/v1/admin/sessions?operator=${bob.email}`)).body
    expect((await app.local.delete(`/v1/admin/sessions/${first.id}`)).status).toBe(204)
    expect((await app.local.delete(`/v1/admin/sessions/${first.id}`)).status).toBe(404)
    expect([(await bob.call('GET', ME)).status, (await second.call('GET', ME)).status]).toEqual([401, 200])
    const third = await logInAgain(app, bob)
    expect((await third.call('DELETE', `/v1/admin/operators/${bob.id}/sessions`)).body).toEqual({ ended: 2 })
    expect([(await second.call('GET', ME)).status, (await third.call('GET', ME)).status]).toEqual([401, 401])
  })

  test('an operator ends their own sessions, and of others only with the scope', async () => {
    const eve = await newPerson(app, { scopes: [], backend_scopes: [] })
    const [mine] = (await eve.call('GET', '/v1/admin/sessions')).body
    const [other] = (await app.local.get(`/v1/admin/sessions?operator=${alice.id}`)).body
    expect((await eve.call('DELETE', `/v1/admin/sessions/${other.id}`)).body.error.code).toBe(
      'insufficient_scope',
    )
    expect((await eve.call('DELETE', `/v1/admin/sessions/ses_${'0'.repeat(26)}`)).status).toBe(403)
    expect((await eve.call('DELETE', `/v1/admin/operators/${alice.id}/sessions`)).status).toBe(403)
    expect((await eve.call('DELETE', `/v1/admin/sessions/${mine.id}`)).status).toBe(204)
    expect((await eve.call('GET', ME)).status).toBe(401)
  })

  test('a session that ends while its request is under way does nothing any more', async () => {
    const bob = await newPerson(app, { passkey: false })
    const { commit } = app.core.store
    let met: (() => void) | undefined
    const meeting = new Promise<void>((resolve) => {
      met = resolve
    })
    let go: (() => void) | undefined
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    app.core.store.commit = async (change, options) => {
      if (JSON.stringify(change).includes('caught-in-flight')) {
        met?.()
        await gate
      }
      return commit(change, options)
    }
    const creating = bob.call('POST', '/v1/admin/agents', { name: 'caught-in-flight' })
    await meeting
    expect((await app.local.delete(`/v1/admin/operators/${bob.id}/sessions`)).body).toEqual({ ended: 1 })
    go?.()
    expect((await creating).body.error.code).toBe('unauthorized')
    app.core.store.commit = commit
    expect((await app.local.get('/v1/admin/agents/caught-in-flight')).status).toBe(404)
  })

  test('rights that change while a request is under way are decided again', async () => {
    const bob = await newPerson(app, { passkey: false })
    const { commit } = app.core.store
    app.core.store.commit = async (change, options) => {
      if (JSON.stringify(change).includes('changed-in-flight')) {
        app.core.store.commit = commit
        await app.local.patch(`/v1/admin/operators/${bob.id}`, { scopes: ['admin:audit:read'] })
      }
      return commit(change, options)
    }
    const created = await bob.call('POST', '/v1/admin/agents', { name: 'changed-in-flight' })
    expect(created.body.error.code).toBe('conflict')
    expect((await bob.call('POST', '/v1/admin/agents', { name: 'changed-in-flight' })).status).toBe(403)
  })

  test('what nobody uses is removed, with an entry', async () => {
    const { expireSessions } = await import('../../src/core/sessions/end-session.ts')
    const own = await startApp()
    const bob = await newPerson(own, { passkey: false })
    own.advance(31 * 60_000)
    expect((await own.local.get('/v1/admin/sessions')).body).toEqual([])
    expect(await expireSessions(own.core)).toBe(false)
    const [entry] = (await own.local.get('/v1/admin/audit?action=session.ended')).body
    expect(entry).toMatchObject({ actor: 'system', details: { reason: 'idle', operator_id: bob.id } })
    await own.close()
  })
})

describe('limits', () => {
  test('ten failures a minute with one link or passkey, a hundred in all; what is right is refused then, too', async () => {
    const own = await startApp()
    const bob = await newPerson(own)
    // The clock stands still: how long the requests take must not matter.
    let now = own.core.store.now()
    own.core.store.now = () => now
    const link = `mfl_${'0'.repeat(64)}`
    const follow = (text = link) => callAsPage(own, 'POST', '/v1/console/login/link', { link: text })
    for (let n = 0; n < 10; n += 1) expect((await follow()).status).toBe(401)
    const limited = await follow()
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([
      429,
      expect.stringMatching(/^\d+$/),
    ])
    // Another passkey or link has its own, until the address has failed too often.
    expect(await logInAgain(own, bob)).toBeDefined()
    for (let n = 0; n < 90; n += 1)
      expect((await follow(`mfl_${String(n).padStart(64, '1')}`)).status).toBe(401)
    await expect(logInAgain(own, bob)).rejects.toThrow('rate_limited')
    now += 60_000
    expect(await logInAgain(own, bob)).toBeDefined()
    // Nothing but failures counts: neither requests without credentials, nor those with an old session.
    for (let n = 0; n < 120; n += 1) await callAsPage(own, 'GET', ME)
    expect(await logInAgain(own, bob)).toBeDefined()
    await own.close()
  })
})
