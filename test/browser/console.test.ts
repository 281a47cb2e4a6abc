import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import {
  button,
  enterByLink,
  frameOf,
  loginLink,
  openWindow,
  originOf,
  registerPasskey,
  type Window,
} from '../support/console.ts'

/** The pages of the console in a real browser, with a virtual authenticator that always agrees. */
let app: TestApp
let origin: string
/** A page of another port of the same host, and of another host. */
let other: Server
let otherPort: number
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = originOf(app)
  other = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>elsewhere</title><body></body>')
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  otherPort = (other.address() as AddressInfo).port
})
afterAll(async () => {
  other?.close()
  await app?.close()
})

let mine: Window
beforeEach(async () => {
  mine = await openWindow()
})
afterEach(() => mine.context.close())

const message = (page: Page) => page.getByRole('alert').textContent()

/** A link for somebody new. */
async function invitation(): Promise<string> {
  people += 1
  const body = { email: `person-${people}@example.com`, scopes: ['admin:*'], backend_scopes: ['*'] }
  return (await app.local.post('/v1/admin/operators', body)).body.invitation.url
}
let people = 0

/** Calls the server from the page, as its script does. */
const callFrom = (page: Page, method: string, path: string, body?: unknown, confirmation?: string) =>
  page.evaluate(
    async ({ method, path, body, confirmation }) => {
      const reply = await fetch(path, {
        method,
        headers: {
          'mayfly-console': localStorage.getItem('mayfly.key') ?? '',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(confirmation === undefined ? {} : { 'mayfly-confirmation': confirmation }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await reply.text()
      return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) }
    },
    { method, path, body, confirmation },
  )

/** Has the passkey of this window sign the options. The texts below run in the page: these tests have no types of the DOM. */
const signIn = (page: Page, options: unknown): Promise<string> =>
  page.evaluate(`(async () => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)})
    const answer = await navigator.credentials.get({ publicKey })
    return btoa(JSON.stringify(answer.toJSON())).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  })()`)

test('from the first link to a passkey, a login with it, a confirmed act, and out again', async () => {
  const { page, complaints } = mine
  const link = await loginLink(app)
  // The address that the server listens on leads to the one that can have passkeys, fragment and all.
  await enterByLink(mine, link.replace('localhost', '127.0.0.1'))
  expect(page.url()).toBe(`${origin}/console`)
  expect(await page.content()).not.toMatch(/mf[skl]_[0-9a-f]/)
  const cookies = await mine.context.cookies()
  expect(cookies).toMatchObject([
    { name: 'mayfly', httpOnly: true, sameSite: 'Strict', secure: false, path: '/' },
  ])
  expect(await page.evaluate('document.cookie')).toBe('')

  await registerPasskey(mine, 'laptop')
  await button(page, 'Log out').click()
  await button(page, 'Log in with a passkey').waitFor()
  expect(await mine.context.cookies()).toEqual([])
  expect(await page.evaluate(() => localStorage.length)).toBe(0)

  await button(page, 'Log in with a passkey').click()
  await frameOf(page).getByText('alice@example.com').waitFor()
  // A second passkey needs the first: the page asks it, and goes on. One authenticator holds one of a person.
  const asked = page.waitForResponse((reply) => reply.status() === 403)
  await mine.cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'usb',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  await registerPasskey(mine, 'second key')
  await asked
  // What it said the browser does not always keep; the audit has what the page did then.
  const [second] = (await app.local.get('/v1/admin/audit?action=passkey.added&limit=1')).body
  expect(second).toMatchObject({ details: { name: 'second key', confirmation: { origin } } })
  await page.reload()
  await page.getByRole('listitem').filter({ hasText: 'second key' }).waitFor()
  // Removing it is an act of its own, which is confirmed, too.
  await page
    .getByRole('listitem')
    .filter({ hasText: 'second key' })
    .getByRole('button', { name: 'Remove' })
    .click()
  await button(page, 'Remove the passkey').click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('listitem').filter({ hasText: 'second key' }).waitFor({ state: 'detached' })
  const [added] = (await app.local.get('/v1/admin/audit?action=passkey.removed&limit=1')).body
  expect(added).toMatchObject({ actor: 'operator:alice@example.com', details: { confirmation: { origin } } })
  expect(complaints).toEqual([])
})

test('another browser gets nowhere with a used link, an assertion, a confirmation or a cookie', async () => {
  const theirs = await openWindow()
  const link = await invitation()
  await enterByLink(mine, link)
  await theirs.page.goto(link)
  await theirs.page.getByRole('alert').waitFor()
  expect(await message(theirs.page)).toContain('was used already')

  // A confirmation of mine, sent from my own page for another body, and from the other browser.
  const body = { email: 'new@example.com', scopes: ['admin:audit:read'] }
  await registerPasskey(mine, 'laptop')
  const first = await callFrom(mine.page, 'POST', '/v1/admin/operators', body)
  expect(first.body.error.code).toBe('confirmation_required')
  const confirmation = await signIn(mine.page, first.body.error.options)
  const more = await callFrom(
    mine.page,
    'POST',
    '/v1/admin/operators',
    { ...body, scopes: ['admin:*'] },
    confirmation,
  )
  expect(more.body.error.code).toBe('confirmation_required')
  await enterByLink(theirs, await invitation())
  const stolen = await callFrom(theirs.page, 'POST', '/v1/admin/operators', body, confirmation)
  expect(stolen.body.error.code).toBe('confirmation_required')
  expect((await callFrom(mine.page, 'POST', '/v1/admin/operators', body, confirmation)).status).toBe(200)
  expect((await callFrom(mine.page, 'POST', '/v1/admin/operators', body, confirmation)).status).toBe(403)

  // A login challenge of mine, answered, and sent once more elsewhere.
  const { options } = (await callFrom(mine.page, 'POST', '/v1/console/login/options')).body
  const assertion = JSON.parse(Buffer.from(await signIn(mine.page, options), 'base64url').toString())
  expect((await callFrom(mine.page, 'POST', '/v1/console/login/passkey', { assertion })).status).toBe(200)
  const again = await callFrom(theirs.page, 'POST', '/v1/console/login/passkey', { assertion })
  expect(again.status).toBe(401)

  // The cookie and the key of a session that has ended.
  const ended = await mine.context.cookies()
  const key = await mine.page.evaluate(() => localStorage.getItem('mayfly.key'))
  await callFrom(mine.page, 'POST', '/v1/console/logout')
  await theirs.context.clearCookies()
  await theirs.context.addCookies(ended)
  await theirs.page.evaluate((text) => localStorage.setItem('mayfly.key', text ?? ''), key)
  expect((await callFrom(theirs.page, 'GET', '/v1/admin/me')).status).toBe(401)
  await theirs.context.close()
})

test('pages of another port and of another origin neither read nor do anything', async () => {
  await enterByLink(mine, await invitation())
  const page = await mine.context.newPage()
  const agents = async () => (await app.local.get('/v1/admin/agents')).body.length
  const before = await agents()
  // The same host sends the cookie along, as cookies do not know of ports; 127.0.0.1 is another site.
  for (const elsewhere of [`http://localhost:${otherPort}`, `http://127.0.0.1:${otherPort}`]) {
    await page.goto(elsewhere)
    const tried = await page.evaluate(async (target) => {
      const attempt = (path: string, options: RequestInit) =>
        fetch(target + path, { credentials: 'include', ...options }).then(
          async (reply) => `${reply.type} ${reply.status} ${(await reply.text()).length}`,
          () => 'failed',
        )
      const body = JSON.stringify({ name: 'planted' })
      const form = { method: 'POST', mode: 'no-cors', body } as const
      return [
        await attempt('/v1/admin/me', {}),
        await attempt('/v1/admin/me', { headers: { 'mayfly-console': 'mfk_x' } }),
        await attempt('/v1/admin/me', { mode: 'no-cors' }),
        await attempt('/v1/admin/agents', {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        }),
        await attempt('/v1/admin/agents', { ...form, headers: { 'content-type': 'text/plain' } }),
        await attempt('/v1/console/login/options', form),
        await attempt('/v1/console/logout', form),
        localStorage.getItem('mayfly.key') ?? 'no key',
      ]
    }, origin)
    expect(tried).toEqual([
      'failed',
      'failed',
      'opaque 0 0',
      'failed',
      'opaque 0 0',
      'opaque 0 0',
      'opaque 0 0',
      'no key',
    ])
    // A form, as a whole page, and the console in a frame.
    await page.evaluate(`(() => {
      const form = document.createElement('form')
      Object.assign(form, { method: 'POST', action: '${origin}/v1/admin/agents', enctype: 'text/plain' })
      document.body.append(form)
      form.submit()
    })()`)
    await page.waitForURL(`${origin}/v1/admin/agents`)
    expect(await page.textContent('body')).toMatch(/unauthorized|unsupported_media_type/)
    await page.goto(elsewhere)
    const framed = await page.evaluate(`(async () => {
      const frame = document.createElement('iframe')
      frame.src = '${origin}/console'
      const loaded = new Promise((resolve) => {
        frame.onload = resolve
      })
      document.body.append(frame)
      await loaded
      try {
        return frame.contentDocument?.title ?? 'closed'
      } catch {
        return 'closed'
      }
    })()`)
    expect(framed).toBe('closed')
  }
  expect(await agents()).toBe(before)
  expect((await callFrom(mine.page, 'GET', '/v1/admin/me')).status).toBe(200)
})

test('says so when the passkey is cancelled, the session ends in another tab, or the link is nonsense', async () => {
  await enterByLink(mine, await invitation())
  const second = await mine.context.newPage()
  await second.goto(`${origin}/console/me`)
  await button(second, 'Log out').click()
  await button(second, 'Log in with a passkey').waitFor()
  await button(mine.page, 'Log in with a passkey').waitFor()
  await mine.page.getByText('Your session has ended').waitFor()
  expect(await second.getByText('Your session has ended').count()).toBe(0)

  const theirs = await openWindow()
  await theirs.cdp.send('WebAuthn.setUserVerified', {
    authenticatorId: theirs.authenticatorId,
    isUserVerified: false,
  })
  await theirs.page.goto(`${origin}/console#link=nonsense`)
  await theirs.page.getByRole('alert').waitFor()
  expect(await message(theirs.page)).toContain('was used already, or is too old')
  await button(theirs.page, 'Log in with a passkey').click()
  await theirs.page.getByText('it was cancelled, or took too long').waitFor()
  await theirs.context.close()
})
