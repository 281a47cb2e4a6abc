import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { confirmationHeader } from '../support/authenticator.ts'
import {
  allow,
  answerIn,
  beginDevice,
  commandByBrowser,
  commandOf,
  look,
  newBrowserLogin,
  pollDevice,
  redeem,
} from '../support/command.ts'
import { callAsPage, linkOf, newPerson, type Person, personOf } from '../support/person.ts'

let one: TestApp
let two: TestApp
beforeAll(async () => {
  one = await startApp({ dialect: 'postgres' })
  two = await startApp({
    databaseUrl: one.databaseUrl ?? '',
    masterKeyFile: join(one.directory, 'master.key'),
  })
})
afterAll(async () => {
  await two.close()
  await one.close()
})

const ME = '/v1/admin/me'
/** The same person, at the other node. */
const at = (app: TestApp, { cookie, key }: Person) => ({
  call: (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    callAsPage(app, method, path, body, { cookie, 'mayfly-console': key, ...headers }),
})
/** The same, with all that a page does. */
const personOn = (app: TestApp, { id, email, cookie, key, authenticator }: Person): Person =>
  personOf(
    app,
    { id, email },
    { status: 200, headers: new Headers({ 'set-cookie': cookie }), text: '', body: { key } },
    authenticator,
  )

test('a session of one node counts at the other, and what one ends the other refuses at the next request', async () => {
  for (const end of [
    (person: Person) => person.call('POST', '/v1/console/logout'),
    ({ email }: Person) => one.local.delete(`/v1/admin/operators/${email}/sessions`),
    ({ email }: Person) => one.local.delete(`/v1/admin/operators/${email}`),
  ]) {
    const person = await newPerson(one)
    const other = at(two, person)
    expect((await other.call('GET', ME)).status).toBe(200)
    expect((await end(person)).status).toBeLessThan(300)
    expect((await other.call('GET', ME)).status).toBe(401)
  }
})

test('scopes that one node takes are gone at the other', async () => {
  const person = await newPerson(one)
  const other = at(two, person)
  expect((await other.call('GET', '/v1/admin/agents')).status).toBe(200)
  await one.local.patch(`/v1/admin/operators/${person.id}`, { scopes: [] })
  expect((await other.call('GET', '/v1/admin/agents')).status).toBe(403)
})

test('begins on one node and ends on the other: a login, a registration, a confirmation; each works once', async () => {
  const person = await newPerson(one)
  const { options } = (await callAsPage(one, 'POST', '/v1/console/login/options')).body
  const assertion = person.authenticator.get(options)
  const login = await callAsPage(two, 'POST', '/v1/console/login/passkey', { assertion })
  expect(login.status).toBe(200)
  expect((await callAsPage(one, 'POST', '/v1/console/login/passkey', { assertion })).status).toBe(401)
  const again = personOf(one, person, login, person.authenticator)
  const body = { email: 'colleague@example.com', scopes: ['admin:audit:read'] }
  const asked = (await again.call('POST', '/v1/admin/operators', body)).body.error
  const header = { 'mayfly-confirmation': confirmationHeader(person.authenticator.get(asked.options)) }
  const invited = await at(two, again).call('POST', '/v1/admin/operators', body, header)
  expect(invited.status).toBe(200)
  const link = linkOf(invited.body.invitation.url)
  const both = await Promise.all(
    [one, two].map((app) => callAsPage(app, 'POST', '/v1/console/login/link', { link })),
  )
  expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
})

test('twenty-one logins at once, on two nodes: twenty sessions are left', async () => {
  const person = await newPerson(one)
  const logIn = async (app: TestApp) => {
    const { options } = (await callAsPage(app, 'POST', '/v1/console/login/options')).body
    const assertion = person.authenticator.get(options)
    // Its counter only counts up, and of two that come out of order the second is refused.
    return callAsPage(app, 'POST', '/v1/console/login/passkey', { assertion })
  }
  for (let n = 0; n < 20; n += 1) expect((await logIn(n % 2 === 0 ? one : two)).status).toBe(200)
  const replies = await Promise.all([one, two, one, two].map(logIn))
  expect(replies.some(({ status }) => status === 200)).toBe(true)
  expect((await two.local.get(`/v1/admin/sessions?operator=${person.id}`)).body).toHaveLength(20)
})

test('two first operators at once, on two nodes: one is made', async () => {
  const links = await Promise.all(
    [one, two].map(async (app) => (await app.local.post('/v1/admin/console/links')).body.url),
  )
  const named = await Promise.all(
    links.map(
      async (url, n) =>
        (await callAsPage(n === 0 ? one : two, 'POST', '/v1/console/login/link', { link: linkOf(url) })).body
          .link,
    ),
  )
  const made = await Promise.all(
    named.map((link, n) =>
      callAsPage(n === 0 ? one : two, 'POST', '/v1/console/login/link', {
        link,
        email: `first-${n}@example.com`,
        name: 'First',
      }),
    ),
  )
  expect(made.map(({ status }) => status).sort()).toEqual([200, 409])
})

describe('a command', () => {
  test('begins on one node, is allowed on the other, and polls the first', async () => {
    const person = await newPerson(one)
    const begun = (await beginDevice(one)).body
    expect((await pollDevice(two, begun.device_code)).body.error).toBe('authorization_pending')
    expect((await pollDevice(one, begun.device_code)).body.error).toBe('slow_down')
    const other = personOn(two, person)
    expect((await look(other, { user_code: begun.user_code })).body.host).toBe('laptop')
    expect((await allow(other, { user_code: begun.user_code })).status).toBe(200)
    const { token } = await commandOf(one, await pollDevice(one, begun.device_code))
    for (const app of [one, two]) expect((await app.as(token).get(ME)).body.id).toBe(person.id)
  })

  test('a code that both nodes get at once gives one token; of a redirect, none that is left', async () => {
    const person = await newPerson(one)
    for (let n = 0; n < 5; n += 1) {
      const begun = (await beginDevice(n % 2 === 0 ? one : two)).body
      await allow(person, { user_code: begun.user_code })
      const got = await Promise.all([one, two].map((app) => pollDevice(app, begun.device_code)))
      expect(got.map(({ status }) => status).sort()).toEqual([200, 400])
      const login = newBrowserLogin()
      const { code = '' } = answerIn(await allow(person, { request: login.request }))
      const both = await Promise.all([one, two].map((app) => redeem(app, login, code)))
      const good = both.find(({ status }) => status === 200)
      expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
      expect((await two.as(good?.body.access_token).get(ME)).status).toBe(401)
    }
  })

  test('what ends on one node is refused on the other at the next request, also while it is being begun', async () => {
    for (let n = 0; n < 5; n += 1) {
      const person = await newPerson(one)
      const { token } = await commandByBrowser(one, person)
      const begun = (await beginDevice(two)).body
      await allow(person, { user_code: begun.user_code })
      expect((await two.as(token).get(ME)).status).toBe(200)
      const [got] = await Promise.all([
        pollDevice(two, begun.device_code),
        person.call('POST', '/v1/console/logout'),
      ])
      expect((await two.as(token).get(ME)).status).toBe(401)
      if (got.status === 200) expect((await one.as(got.body.access_token).get(ME)).status).toBe(401)
      else expect(got.body.error).toBe('access_denied')
      const left = (await one.local.get(`/v1/admin/sessions?operator=${person.id}`)).body
      expect(left).toEqual([])
    }
  })

  test('one that is removed with its operator, while it acts on the other node', async () => {
    const person = await newPerson(one)
    const { client } = await commandByBrowser(two, personOn(two, person))
    const acts = Array.from({ length: 6 }, (_, n) =>
      client.post('/v1/admin/agents', { name: `node-${person.id.slice(-6)}-${n}` }),
    )
    await Promise.all([...acts, one.local.delete(`/v1/admin/operators/${person.id}`)])
    expect((await client.post('/v1/admin/agents', { name: 'afterwards' })).status).toBe(401)
  })
})
