import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import AxeBuilder from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { beginDevice, CLIENT, newBrowserLogin, pollDevice, redeem } from '../support/command.ts'
import {
  button,
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  registerPasskey,
  type Window,
} from '../support/console.ts'
import { KEYBOARD, MOUSE } from '../support/hands.ts'

/** A person allows the login of a command, and nobody but a person does. */
let app: TestApp
let origin: string
let mine: Window
let page: Page
/** Where a command waits for the browser, and where a stranger has a page. */
let listener: Server
let port: number
const arrived: URL[] = []

beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = originOf(app)
  listener = createServer((request, response) => {
    const url = new URL(request.url ?? '', `http://127.0.0.1:${port}`)
    if (url.pathname === '/callback') arrived.push(url)
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>elsewhere</title><body>You may close this page.</body>')
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  port = (listener.address() as AddressInfo).port
  mine = await openWindow()
  page = mine.page
  await enterByLink(mine, await loginLink(app))
  await registerPasskey(mine, 'laptop')
}, 60_000)
afterAll(async () => {
  await mine?.context.close()
  listener?.close()
  await app?.close()
})
beforeEach(() => {
  arrived.length = 0
  // Ten wrong codes and ten new logins a minute.
  app.advance(60_000)
})

const codeField = () => page.getByLabel('The code that your terminal shows')
const asking = () => page.getByRole('group', { name: 'The command that asks' })
const begin = async (host = 'build-7') => (await beginDevice(app, { client_id: CLIENT, host })).body
const poll = async (code: string) => {
  app.advance(11_000)
  return (await pollDevice(app, code)).body
}
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]
const addressOf = (request: string) => `${origin}/console/allow?${request}`
const loopback = (host = 'laptop') =>
  newBrowserLogin({ redirect_uri: `http://127.0.0.1:${port}/callback`, host })

test.each([MOUSE, KEYBOARD])('a code that is typed lets a command in, by $name', async (hands) => {
  const host = '<b>evil</b> build-7'
  const { device_code, user_code } = await begin(host)
  // A code in the address is one that somebody has sent.
  await page.goto(`${origin}/console/allow?user_code=${user_code}`)
  await codeField().waitFor()
  expect(await codeField().inputValue()).toBe('')
  expect(await page.evaluate('document.activeElement.tagName')).toBe('INPUT')
  const typed = user_code.toLowerCase().replace('-', ' ')
  if (hands === KEYBOARD) await page.keyboard.type(typed)
  else await hands.write(codeField(), typed)
  await page.keyboard.press('Enter')
  await asking().getByText(host).waitFor()
  await asking().getByText('127.0.0.1').waitFor()
  expect(await page.getByRole('note').textContent()).toContain('Whoever sent you this code would act as you.')
  if (hands === MOUSE) {
    const { violations } = await new AxeBuilder({ page }).analyze()
    expect(violations.map(({ id }) => id)).toEqual([])
  }
  // No key allows by itself, nor the Enter that is held down.
  for (const key of ['Enter', 'a', 'A', 'y', 'Control+Enter']) await page.keyboard.press(key)
  expect((await poll(device_code)).error).toBe('authorization_pending')

  await hands.press(button(page, 'Allow'))
  await page.getByText('Go back to your terminal').waitFor()
  expect(await newest('session.allowed')).toMatchObject({
    actor: 'operator:alice@example.com',
    details: { method: 'device', confirmation: { origin } },
  })
  const token = (await poll(device_code)).access_token
  expect((await app.as(token).get('/v1/admin/me')).body.session.method).toBe('device')

  // It is listed under the session that allowed it, and ends there.
  await page.getByRole('link', { name: 'your account' }).click()
  const commands = page.getByRole('list', { name: 'Commands that this session has allowed' })
  await commands.getByText(host).waitFor()
  await hands.press(commands.getByRole('button', { name: /^End the command on/ }))
  await commands.waitFor({ state: 'detached' })
  expect((await app.as(token).get('/v1/admin/me')).status).toBe(401)
  expect(mine.complaints).toEqual([])
})

test('a command of this machine is let in by its address, after a login, and is told when it is denied', async () => {
  await page.goto(`${origin}/console/me`)
  await button(page, 'Log out').click()
  await button(page, 'Log in with a passkey').waitFor()
  const login = loopback('laptop-of-alice')
  await page.goto(addressOf(login.request))
  await page.getByText('A command asks to be logged in.').waitFor()
  await button(page, 'Log in with a passkey').click()
  await asking().getByText('laptop-of-alice').waitFor()
  await asking().getByText(`127.0.0.1:${port}`).waitFor()
  await button(page, 'Allow').click()
  await page.waitForURL(/\/callback/)
  const { code = '', state, iss } = Object.fromEntries(arrived[0]!.searchParams)
  expect([state, iss]).toEqual([login.state, app.core.settings.issuer])
  const { access_token } = (await redeem(app, login, code)).body
  expect((await app.as(access_token).get('/v1/admin/me')).body.session.method).toBe('browser')

  const other = loopback()
  await page.goto(addressOf(other.request))
  await button(page, 'Deny').click()
  await page.waitForURL(/\/callback/)
  expect(Object.fromEntries(arrived[1]!.searchParams)).toEqual({
    error: 'access_denied',
    state: other.state,
    iss: app.core.settings.issuer,
  })

  const device = await begin()
  await page.goto(`${origin}/console/allow`)
  await codeField().fill(device.user_code)
  await page.keyboard.press('Enter')
  await button(page, 'Deny').click()
  await page.getByRole('heading', { name: 'Denied' }).waitFor()
  expect((await poll(device.device_code)).error).toBe('access_denied')
  expect(mine.complaints).toEqual([])
})

test('an address that is not of this machine, or not of the command, gets no answer', async () => {
  for (const change of [
    { redirect_uri: 'http://evil.example:80/callback' },
    { redirect_uri: `http://127.0.0.1:${port}@evil.example/callback` },
    { redirect_uri: `http://127.0.0.1:${port}/other` },
    { client_id: 'another' },
    { code_challenge: undefined },
  ]) {
    await page.goto(addressOf(newBrowserLogin(change).request))
    await page.getByRole('alert').filter({ hasText: 'no login that the command began' }).waitFor()
    expect(await button(page, 'Allow').count()).toBe(0)
  }
  expect(arrived).toEqual([])
})

test('a stranger can neither type, nor allow, nor frame it, and codes cannot be tried out', async () => {
  const { device_code, user_code } = await begin()
  const before = (await newest('session.allowed')).id
  const stranger = await mine.context.newPage()
  for (const elsewhere of [`http://localhost:${port}`, `http://127.0.0.1:${port}`]) {
    await stranger.goto(elsewhere)
    const tried = await stranger.evaluate(
      async ({ target, code }) => {
        const attempt = (path: string, options: RequestInit) =>
          fetch(target + path, { method: 'POST', credentials: 'include', ...options }).then(
            (reply) => `${reply.type} ${reply.status}`,
            () => 'failed',
          )
        const body = JSON.stringify({ user_code: code })
        const json = { body, headers: { 'content-type': 'application/json' } }
        return [
          await attempt('/v1/console/commands/look', json),
          await attempt('/v1/console/commands/allow', json),
          await attempt('/v1/console/commands/allow', { body, mode: 'no-cors' }),
          await attempt('/v1/console/commands/deny', { body, mode: 'no-cors' }),
        ]
      },
      { target: origin, code: user_code },
    )
    expect(tried).toEqual(['failed', 'failed', 'opaque 0', 'opaque 0'])
    const framed = await stranger.evaluate(`(async () => {
      const frame = document.createElement('iframe')
      frame.src = '${addressOf(loopback().request)}'
      const loaded = new Promise((resolve) => (frame.onload = resolve))
      document.body.append(frame)
      await loaded
      return frame.contentDocument?.title ?? 'closed'
    })()`)
    expect(framed).toBe('closed')
  }
  await stranger.close()
  expect((await newest('session.allowed')).id).toBe(before)
  expect((await poll(device_code)).error).toBe('authorization_pending')

  await page.goto(`${origin}/console/allow`)
  await codeField().fill('short')
  await page.keyboard.press('Enter')
  await page.getByText('A code has eight letters and digits').waitFor()
  // Ten, and one for every six seconds that this takes.
  const statuses: number[] = []
  while (statuses.at(-1) !== 429 && statuses.length < 30) {
    await codeField().fill(`BCDF-22${statuses.length + 22}`)
    const answered = page.waitForResponse(/commands\/look$/)
    await page.keyboard.press('Enter')
    statuses.push((await answered).status())
    await page.getByRole('alert').waitFor()
  }
  expect(statuses.length).toBeGreaterThan(10)
  expect(new Set(statuses.slice(0, -1))).toEqual(new Set([404]))
  await page.getByText(/^You may try again in \d+s\.$/).waitFor()
  expect(await codeField().inputValue()).toMatch(/^BCDF-22/)
})
