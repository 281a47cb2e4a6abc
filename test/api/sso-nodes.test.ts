import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { callAsPage } from '../support/person.ts'
import {
  begin,
  confirmationOf,
  finish,
  logIn,
  type SsoWorld,
  startSsoWorld,
  stateOf,
} from '../support/sso-person.ts'

let one: SsoWorld
let two: TestApp
beforeAll(async () => {
  one = await startSsoWorld({ dialect: 'postgres' })
  two = await one.node({
    databaseUrl: one.app.databaseUrl ?? '',
    masterKeyFile: join(one.app.directory, 'master.key'),
  })
})
afterAll(async () => {
  await two?.close()
  await one?.close()
})

test('begins on one node and finishes on the other, once', async () => {
  one.provider.user = 'alice'
  const { url, cookie } = await begin(one.app)
  const answer = await one.provider.logIn(url)
  const both = await Promise.all([one.app, two, two].map((app) => finish(app, answer, cookie)))
  expect(both.map(({ status }) => status).sort()).toEqual([200, 401, 401])
  expect((await finish(one.app, answer, cookie)).status).toBe(401)
})

test('a confirmation is asked for, begun, finished and used on different nodes, once', async () => {
  const alice = await logIn(one.app, one.provider, 'alice')
  const at = (app: TestApp, path: string, body: unknown, more = {}) =>
    callAsPage(app, 'POST', path, body, { ...alice.headers, ...more })
  const body = { email: 'guest@example.com', scopes: ['admin:audit:read'] }
  const { challenge } = (await at(one.app, '/v1/admin/operators', body)).body.error.options.sso
  const begun = await at(two, '/v1/console/confirm/sso', { challenge })
  const answer = await one.provider.logIn(begun.body.url)
  expect((await finish(one.app, answer, stateOf(begun))).body).toEqual({ confirmed: challenge })
  const header = confirmationOf(challenge)
  const both = await Promise.all([one.app, two].map((app) => at(app, '/v1/admin/operators', body, header)))
  expect(both.map(({ status }) => status).sort()).toEqual([200, 403])
})

test('three first logins at once on two nodes make one operator', async () => {
  one.provider.people.set('twins', { groups: ['admins'] })
  one.provider.user = 'twins'
  const begun = [await begin(one.app), await begin(two), await begin(two)]
  const answers: string[] = []
  for (const { url } of begun) answers.push(await one.provider.logIn(url))
  const replies = await Promise.all(
    begun.map(({ cookie }, n) => finish(n === 0 ? two : one.app, answers[n] ?? '', cookie)),
  )
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
  const all = (await two.local.get('/v1/admin/operators')).body as { sso: { subject: string } | null }[]
  expect(all.filter(({ sso }) => sso?.subject === 'twins')).toHaveLength(1)
})
