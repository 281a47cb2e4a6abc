import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reply, startApp, type TestApp } from '../support/app.ts'
import { callAsPage } from '../support/person.ts'
import { type SsoServer, startSsoServer } from '../support/sso-server.ts'

let directory: string
let provider: SsoServer
let app: TestApp
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-sso-'))
  provider = await startSsoServer()
  provider.people.set('alice', {
    name: 'Alice',
    email: 'Alice@Example.com',
    email_verified: true,
    groups: ['admins'],
  })
  app = await startApp({ yaml: JSON.stringify({ sso: [await provider.entry(directory)] }) })
})
afterAll(async () => {
  await app?.close()
  await provider?.close()
  await rm(directory, { recursive: true, force: true })
})

const setCookies = (reply: Reply) => reply.headers.get('set-cookie')?.split(/,(?=mayfly|__Host)/) ?? []

test('a person logs in', async () => {
  expect((await callAsPage(app, 'GET', '/v1/console/login')).body).toEqual({ sso: [{ name: 'Example SSO' }] })
  const begun = await callAsPage(app, 'POST', '/v1/console/login/sso', { provider: 'Example SSO' })
  expect(begun.status, begun.text + app.logged()).toBe(200)
  const cookie = setCookies(begun)[0]?.split(';')[0] ?? ''
  const parameters = await provider.logIn(begun.body.url)
  const done = await callAsPage(app, 'POST', '/v1/console/login/sso/finish', { parameters }, { cookie })
  expect(done.status, done.text + app.logged()).toBe(200)
  const me = await callAsPage(app, 'GET', '/v1/admin/me', undefined, {
    cookie:
      setCookies(done)
        .find((c) => c.startsWith('__Host'))
        ?.split(';')[0] ?? '',
    'mayfly-console': done.body.key,
  })
  expect(me.body).toMatchObject({
    name: 'Alice',
    email: 'alice@example.com',
    sso: { provider: 'Example SSO', issuer: provider.issuer, subject: 'alice' },
    session: { method: 'sso' },
  })
})
