import { afterAll, beforeAll, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { openWindow } from '../support/console.ts'

/** The documentation page in a real browser, which enforces its policy. */
let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  agent = await app.newAgent({ scopes: ['orders'] })
})
afterAll(async () => {
  await app.close()
})

test('shows the interface, asks nobody else, breaks no rule of its policy, and calls the server with a pasted token', async () => {
  const { page, context, complaints } = await openWindow()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
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

  // A library of the page tries whether it may evaluate code, and goes on without.
  expect(complaints).toEqual(['CSP script-src eval'])
  expect(asked.filter((url) => /^https?:/.test(url) && !url.startsWith(app.url))).toEqual([])
  await context.close()
})
