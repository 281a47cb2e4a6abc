import { type Browser, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

/** The documentation page in a real browser, which enforces its policy. */
let app: TestApp
let agent: NewAgent
let browser: Browser
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  agent = await app.newAgent({ scopes: ['orders'] })
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  })
})
afterAll(async () => {
  await browser.close()
  await app.close()
})

test('shows the interface, asks nobody else, breaks no rule of its policy, and calls the server with a pasted token', async () => {
  const page = await browser.newPage()
  const asked: string[] = []
  const complaints: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.goto(`${app.url}/`)
  await page.getByText('Whether the process is alive').first().waitFor()
  expect(new URL(page.url()).pathname).toBe('/docs')

  await page.goto(`${app.url}/docs#tag/agent/GET/v1/status`)
  await page.getByPlaceholder('Token').first().fill(agent.token)
  await page.getByRole('button', { name: /Test Request\s*\(get \/v1\/status\)/ }).click()
  const called = page.waitForResponse((reply) => reply.url() === `${app.url}/v1/status`)
  await page.getByRole('button', { name: /^Send/ }).first().click()
  const reply = await called
  expect([reply.status(), (await reply.json()).name]).toEqual([200, agent.name])

  expect(complaints).toEqual([])
  expect(asked.filter((url) => /^https?:/.test(url) && !url.startsWith(app.url))).toEqual([])
}, 60_000)
