import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type AnsweringProxy, startAnsweringProxy } from '../support/answering-proxy.ts'
import { eventually, startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import {
  button,
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  registerPasskey,
  type Window,
} from '../support/console.ts'
import { startDoppler } from '../support/fakes/doppler.ts'
import { byPalette, KEYBOARD, tabTo } from '../support/hands.ts'
import { LONG } from '../support/long.ts'

/** Ending credentials in a real browser, at an upstream that is slow, or refuses. */
const COUNT = LONG ? 500 : 40
let app: TestApp
let origin: string
let doppler: Awaited<ReturnType<typeof startDoppler>>
let upstream: AnsweringProxy
/** How the upstream answers to the end of a token. */
let ending: { ms: number; status?: number } = { ms: 0 }
let operator: Window

beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true, jobs: true, yaml: 'limits:\n  max_active_per_agent: 1000\n' })
  origin = originOf(app)
  doppler = await startDoppler(['shop/prod'])
  upstream = await startAnsweringProxy(doppler.api.url, async (method) => {
    if (method !== 'DELETE') return undefined
    await new Promise((resolve) => setTimeout(resolve, ending.ms))
    return ending.status === undefined ? undefined : { status: ending.status, body: '{"messages":["no"]}' }
  })
  const config = { token: doppler.token, base_url: upstream.url, local: true, configs: ['shop/prod'] }
  await app.newBackend({ type: 'doppler', name: 'shop', config })
  operator = await openWindow()
  await enterByLink(operator, await loginLink(app))
  await registerPasskey(operator, 'laptop')
}, 120_000)
afterAll(async () => {
  await operator?.context.close()
  await app?.close()
  await upstream?.[Symbol.asyncDispose]()
  await doppler?.api.close()
})
beforeEach(() => {
  ending = { ms: 0 }
})

async function holder(name: string, count: number): Promise<void> {
  const agent = await app.newAgent({ name, scopes: ['shop'] })
  for (let n = 0; n < count; n += 1) {
    const reply = await agent.client.post('/api/v1/credentials', {
      backend: 'shop',
      ttl: '1h',
      scopes: ['shop/prod:read'],
    })
    expect(reply.status).toBe(201)
  }
}

test(`ends ${COUNT} credentials of a slow upstream, while one watches until the last is gone there`, async () => {
  const { page, complaints } = operator
  await holder('swarm', COUNT)
  ending = { ms: 150 }
  await page.goto(`${origin}/console/credentials?agent=swarm`)
  await page.getByRole('row', { name: /swarm/ }).first().waitFor()
  await button(page, 'End all of swarm').click()
  // The passkey is asked for; nothing is said to have ended before the server says so.
  await button(page, 'End all').click()
  await page.getByText(`${COUNT} credentials have ended.`).waitFor()
  await page.getByLabel('State').selectOption('Not ended upstream')
  await page.getByText('ending…').first().waitFor()
  await page.getByText('No credential matches').waitFor({ timeout: 100_000 })
  expect(doppler.tokens.size).toBe(0)
  const [entry] = (await app.local.get('/v1/admin/audit?action=credential.revoked&limit=1')).body
  expect(entry.actor).toBe('operator:alice@example.com')
  expect(complaints).toEqual([])
}, 120_000)

test('what the upstream does not end stands out with its reason and the next try, until it is gone', async () => {
  const { page } = operator
  await holder('stubborn', 1)
  ending = { ms: 0, status: 503 }
  await page.goto(`${origin}/console/credentials?agent=stubborn`)
  await page
    .getByRole('row', { name: /stubborn/ })
    .first()
    .click()
  await button(page, 'End it').click()
  await button(page, 'End the credential').click()
  const alert = page.getByRole('alert').filter({ hasText: 'The upstream has not ended it.' })
  await alert.waitFor()
  expect(await alert.textContent()).toMatch(/unavailable\s*Tries so far: \d+\. Next try/)
  await page.goto(`${origin}/console/credentials?unended=true`)
  await page
    .getByRole('row', { name: /stubborn/ })
    .getByText('not ended')
    .waitFor()
  expect(doppler.tokens.size).toBe(1)
  ending = { ms: 0 }
  await page.getByText('No credential matches').waitFor({ timeout: 60_000 })
  expect(doppler.tokens.size).toBe(0)
}, 120_000)

test('by the keyboard alone: go there, select, end, and open one', async () => {
  const { page, complaints } = operator
  await holder('typist', 3)
  await page.goto(`${origin}/console`)
  await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
  await page.keyboard.press('g')
  await page.keyboard.press('c')
  await page
    .getByRole('row', { name: /typist/ })
    .first()
    .waitFor()
  // The first row has the cursor.
  for (const key of ['x', 'j', 'x']) await page.keyboard.press(key)
  await KEYBOARD.press(button(page, 'End 2 selected'))
  await page.getByRole('dialog').waitFor()
  await KEYBOARD.press(button(page, 'End 2 credentials'))
  await page.getByText('2 of 2 ended').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await eventually(async () => expect(doppler.tokens.size).toBe(1))
  await page.keyboard.press('/')
  await page.keyboard.type('typist')
  await page.keyboard.press('Enter')
  await page.waitForURL(/agent=typist/)
  await tabTo(page.getByRole('grid'))
  await page.keyboard.press('Enter')
  await page.getByRole('article', { name: 'Credential' }).waitFor()
  await byPalette(page, 'End the credential')
  await KEYBOARD.press(button(page, 'End the credential'))
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await eventually(async () => expect(doppler.tokens.size).toBe(0))
  await page.keyboard.press('Escape')
  await page.getByRole('article', { name: 'Credential' }).waitFor({ state: 'detached' })
  expect(complaints).toEqual([])
}, 120_000)
