import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import {
  button,
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  untilLive,
  type Window,
} from '../support/console.ts'
import { SAME_ORIGIN } from '../support/person.ts'

/** Two nodes on one PostgreSQL: the console is open on one, and things happen on the other. */
let one: TestApp
let two: TestApp
let origin: string
let operator: Window
beforeAll(async () => {
  await buildWeb()
  one = await startApp({ dialect: 'postgres', ownIssuer: true })
  two = await startApp({
    databaseUrl: one.databaseUrl ?? '',
    masterKeyFile: join(one.directory, 'master.key'),
    argv: { issuer: one.url },
  })
  origin = originOf(one)
  operator = await openWindow()
  await enterByLink(operator, await loginLink(one))
})
afterAll(async () => {
  await operator?.context.close()
  await two?.close()
  await one?.close()
})

test('what happens on the other node appears on this one, without a reload', async () => {
  const { page, complaints } = operator
  await page.goto(`${origin}/console/credentials`)
  await page.getByText('Nobody holds a credential now').waitFor()
  await untilLive(page)
  await page.evaluate('window.isSamePage = true')
  await two.newBackend({ name: 'orders' })
  const agent = await two.newAgent({ name: 'elsewhere', scopes: ['orders:read'] })
  const issued = await agent.client.post('/api/v1/credentials', {
    backend: 'orders',
    scopes: ['orders:read'],
  })
  expect(issued.status).toBe(201)
  await page.getByRole('row', { name: /elsewhere/ }).waitFor()
  await agent.client.post('/v1/request', { scopes: ['orders:write'], reason: 'on the other node' })
  await page.getByRole('link', { name: 'Inbox 1 waiting' }).click()
  await page.getByRole('row', { name: /elsewhere/ }).waitFor()
  expect(await page.evaluate('window.isSamePage')).toBe(true)
  expect(complaints).toEqual([])
})

test('an export that was begun on this node is downloaded once, from whichever answers', async () => {
  const { page, context } = operator
  // As the page does, but for the download that it would begin with the address.
  const address = await page.evaluate<string>(`fetch('/v1/admin/audit/export', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'mayfly-console': localStorage.getItem('mayfly.key') },
    body: JSON.stringify({ format: 'jsonl', action: 'session.started' }),
  }).then((reply) => reply.json()).then(({ url }) => url)`)
  const path = new URL(address, origin)
  const cookies = (await context.cookies(origin)).map(({ name, value }) => `${name}=${value}`).join('; ')
  const fetchFrom = (app: TestApp) =>
    app.raw({
      path: path.pathname + path.search,
      headers: { host: new URL(app.url).host, cookie: cookies, ...SAME_ORIGIN },
    })
  const got = await fetchFrom(two)
  expect([got.status, got.headers['content-type']]).toEqual([200, 'application/x-ndjson; charset=utf-8'])
  expect(JSON.parse(got.text.split('\n')[0] ?? '')).toMatchObject({ action: 'session.started' })
  const again = await fetchFrom(one)
  expect([again.status, JSON.parse(again.text).error.code]).toEqual([410, 'gone'])
})

test('a session that the other node ends is over here at once', async () => {
  const { page, complaints } = operator
  await page.goto(`${origin}/console/agents`)
  await untilLive(page)
  const ended = performance.now()
  expect((await two.local.delete('/v1/admin/operators/alice@example.com/sessions')).status).toBeLessThan(300)
  await button(page, 'Log in with a passkey').waitFor()
  await page.getByText('Your session has ended.').waitFor()
  expect(performance.now() - ended).toBeLessThan(10_000)
  // Nothing of what was shown is left.
  expect(await page.getByRole('row').count()).toBe(0)
  expect(await page.evaluate('localStorage.getItem("mayfly.key")')).toBeNull()
  expect(new URL(page.url()).pathname).toBe('/console/agents')
  expect(complaints).toEqual([])
})
