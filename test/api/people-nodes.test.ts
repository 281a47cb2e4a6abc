import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { confirmationHeader } from '../support/authenticator.ts'
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
