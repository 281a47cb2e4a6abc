import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MINUTE_MS } from '../../src/domain/limits.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { allow, beginDevice, CLIENT, look, pollDevice, postForm } from '../support/command.ts'
import { newPerson, type Person } from '../support/person.ts'

let app: TestApp
let alice: Person
let now: number
beforeAll(async () => {
  app = await startApp()
  alice = await newPerson(app)
  // The clock stands still: how long the requests take must not matter.
  now = app.core.store.now()
  app.core.store.now = () => now
})
const advance = (ms: number) => {
  now += ms
}
afterAll(() => app.close())

describe('limits', () => {
  test('ten wrong codes a minute of one session, and a right one is refused then, too', async () => {
    const bob = await newPerson(app)
    advance(MINUTE_MS)
    const begun = (await beginDevice(app)).body
    for (let n = 0; n < 10; n += 1) expect((await look(bob, { user_code: 'BCDF-2345' })).status).toBe(404)
    for (const act of [look, allow]) {
      const reply = await act(bob, { user_code: begun.user_code })
      expect([reply.status, Number(reply.headers.get('retry-after'))]).toEqual([429, expect.any(Number)])
    }
    advance(MINUTE_MS)
    expect((await look(bob, { user_code: begun.user_code })).status).toBe(200)
  })

  test('a hundred of one address', async () => {
    advance(MINUTE_MS)
    const people = await Promise.all(Array.from({ length: 11 }, () => newPerson(app)))
    advance(MINUTE_MS)
    const status = async (person: Person) => (await look(person, { user_code: 'BCDF-2345' })).status
    const seen = []
    for (const person of people.slice(0, 10)) for (let n = 0; n < 10; n += 1) seen.push(await status(person))
    expect(seen).toEqual(Array(100).fill(404))
    const last = people[10] as Person
    expect(await status(last)).toBe(429)
    advance(MINUTE_MS)
  })

  test('ten logins begin in a minute at one address; polls beyond thirty a minute do not reach the store', async () => {
    advance(MINUTE_MS)
    const begun = []
    for (let n = 0; n < 10; n += 1) begun.push(await beginDevice(app))
    expect(begun.map(({ status }) => status)).toEqual(Array(10).fill(200))
    const refused = await beginDevice(app)
    expect([refused.status, refused.body.error]).toEqual([429, 'temporarily_unavailable'])
    const { device_code } = begun[0]?.body ?? {}
    for (let n = 0; n < 30; n += 1) await pollDevice(app, device_code)
    const { pollMs } =
      (await app.core.store.commandLogins.findByCode(app.core.hasher.hash(device_code))) ?? {}
    expect((await pollDevice(app, device_code)).body.error).toBe('slow_down')
    const after = await app.core.store.commandLogins.findByCode(app.core.hasher.hash(device_code))
    expect(after?.pollMs).toBe(pollMs)
  })

  test('ten unknown codes of a device a minute, and a hundred of an address', async () => {
    advance(MINUTE_MS)
    const unknown = (n: number) => `mdc_${n.toString(16).padStart(64, '0')}`
    for (let n = 0; n < 10; n += 1) expect((await pollDevice(app, unknown(1))).status).toBe(400)
    expect((await pollDevice(app, unknown(1))).status).toBe(429)
    const others = []
    for (let n = 0; n < 91; n += 1) others.push((await pollDevice(app, unknown(n + 2))).status)
    expect(others).toEqual([...Array(90).fill(400), 429])
    advance(MINUTE_MS)
  })

  test('a thousand wait at once', async () => {
    const before = await app.core.store.commandLogins.countWaiting(now)
    const waiting = Array.from({ length: 1_000 - before }, (_, n) =>
      app.core.store.commandLogins.insert({
        codeHash: `full ${n}`,
        kind: 'device',
        userCodeHash: `full ${n}`,
        state: 'waiting',
        host: 'x',
        ipAddress: null,
        userAgent: null,
        operatorId: null,
        sessionId: null,
        redirectUri: null,
        codeChallenge: null,
        polledAt: null,
        pollMs: 5_000,
        createdAt: now,
        expiresAt: now + MINUTE_MS,
      }),
    )
    await app.core.store.commit(waiting)
    const refused = await beginDevice(app)
    expect([refused.status, refused.body.error_description]).toEqual([
      429,
      expect.stringContaining('--browser'),
    ])
    advance(MINUTE_MS)
    expect((await beginDevice(app)).status).toBe(200)
    await app.core.store.commit(app.core.store.tokens.tidy(app.core.store.now()))
    expect(await app.core.store.commandLogins.findByCode('full 0')).toBeUndefined()
  })
})

describe('a form of a device', () => {
  beforeAll(() => advance(MINUTE_MS))

  test.each<[string, Record<string, string> | string, number, string]>([
    ['no client', { host: 'x' }, 401, 'invalid_client'],
    ['another client', { client_id: 'other', host: 'x' }, 401, 'invalid_client'],
    ['no host', { client_id: CLIENT }, 400, 'invalid_request'],
    ['an empty host', { client_id: CLIENT, host: '' }, 400, 'invalid_request'],
    ['a long host', { client_id: CLIENT, host: 'a'.repeat(256) }, 400, 'invalid_request'],
    ['an escape in the host', { client_id: CLIENT, host: 'a\u001b[31m' }, 400, 'invalid_request'],
    ['a line break', { client_id: CLIENT, host: 'a\nb' }, 400, 'invalid_request'],
    ['text that turns around', { client_id: CLIENT, host: 'a\u202eb' }, 400, 'invalid_request'],
    ['a zero byte', { client_id: CLIENT, host: 'a\0b' }, 400, 'invalid_request'],
    ['a host twice', `client_id=${CLIENT}&host=a&host=b`, 400, 'invalid_request'],
    ['JSON', '{"client_id":"mayfly-cli","host":"a"}', 401, 'invalid_client'],
  ])('%s', async (_, form, status, error) => {
    const reply = await beginDevice(app, form)
    expect([reply.status, reply.body.error]).toEqual([status, error])
  })

  test('the code of a device in the query, or none, is refused', async () => {
    const grant = 'grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=mayfly-cli'
    expect((await postForm(app, `/oauth/token?device_code=mdc_${'0'.repeat(64)}`, grant)).status).toBe(400)
    expect((await postForm(app, '/oauth/token', grant)).body.error).toBe('invalid_request')
  })

  test('a foreign page cannot look, allow or deny', async () => {
    const begun = (await beginDevice(app)).body
    const body = JSON.stringify({ user_code: begun.user_code })
    for (const act of ['look', 'allow', 'deny'])
      for (const headers of [
        { ...alice.headers(), 'sec-fetch-site': 'cross-site' },
        { ...alice.headers(), 'sec-fetch-site': 'same-site' },
        { cookie: alice.cookie, 'sec-fetch-site': 'same-origin' },
        { ...alice.headers(), 'sec-fetch-site': '' },
      ]) {
        const reply = await app.raw({
          method: 'POST',
          path: `/v1/console/commands/${act}`,
          headers: { host: new URL(app.url).host, 'content-type': 'application/json', ...headers },
          body,
        })
        expect([act, reply.status]).toEqual([act, 401])
      }
    expect((await pollDevice(app, begun.device_code)).body.error).toBe('authorization_pending')
  })

  test.each([
    {},
    { user_code: 'BCDF-2345', request: 'x' },
    { user_code: '' },
    { user_code: 1 },
    { code: 'x' },
  ])('a person decides on one login: not %j', async (body) => {
    expect((await look(alice, body)).status).toBe(400)
  })
})
