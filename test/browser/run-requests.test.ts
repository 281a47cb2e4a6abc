import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RequestLine } from '../../src/client/wire.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { button, enterByLink, loginLink, openWindow, originOf, type Window } from '../support/console.ts'

/** What goes through the proxy of a run, in a real browser: while it works, filtered, by pages, and as text alone. */

let app: TestApp
let origin: string
let operator: Window
let agent: NewAgent
let batches = 0
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true, jobs: true })
  origin = originOf(app)
  await app.newBackend({ name: 'github' })
  agent = await app.newAgent({ name: 'worker', scopes: ['github'] })
  operator = await openWindow()
  await enterByLink(operator, await loginLink(app))
}, 120_000)
afterAll(async () => {
  await operator?.context.close()
  await app?.close()
})

const LINE: RequestLine = {
  at: '',
  protocol: 'http',
  method: 'GET',
  authority: 'api.github.com',
  path: '/repos/acme/shop',
  status: 200,
  bytes_sent: 812,
  bytes_received: 20_480,
  duration_ms: 183,
  decision: 'injected',
  reason: null,
  backend: 'github',
  credential_id: null,
  placeholder: 'github.token',
  redacted: 0,
}

async function start(): Promise<string> {
  const reply = await agent.client.post('/v1/runs', { purpose: 'through a proxy', heartbeat: '1h' })
  expect(reply.status, reply.text).toBe(200)
  return reply.body.id
}

/** As a proxy tells of them: in the order in which they ended. */
async function record(run: string, ...lines: readonly Partial<RequestLine>[]): Promise<void> {
  batches += 1
  const batch = String(batches).padStart(26, '0')
  const at = new Date().toISOString()
  const reply = await agent.client.post(`/v1/runs/${run}/requests`, {
    batch,
    requests: lines.map((line) => ({ ...LINE, at, ...line })),
  })
  expect(reply.status, reply.text).toBe(204)
}

const detail = (page: Page) => page.getByRole('article', { name: 'Run' })
const requests = (page: Page) =>
  page.getByRole('list', { name: 'Requests, newest first' }).getByRole('listitem')

const REFUSED = {
  path: '/graphql',
  method: 'POST',
  status: 403,
  decision: 'refused',
  reason: 'denied',
} as const
const MISUSED = {
  authority: 'elsewhere.example.net',
  path: null,
  status: 403,
  decision: 'misused',
  reason: 'elsewhere',
} as const

test('a request appears while one looks, with what became of it, and the filter leaves the refused ones', async () => {
  const { page, complaints } = operator
  const id = await start()
  await page.goto(`${origin}/console/runs/${id}`)
  await detail(page).getByText('keeps the secrets from the program').waitFor()
  await record(id, {}, { decision: 'forwarded', placeholder: null, redacted: 2 })
  await record(id, REFUSED, MISUSED)
  // Nobody has loaded the page again.
  await detail(page).getByText('Requests through the proxy: 4, 2 refused').waitFor()
  await eventually(async () => expect(await requests(page).count()).toBe(4))
  const texts = await requests(page).allInnerTexts()
  expect(texts[0]).toMatch(/GET elsewhere\.example\.net\s+placeholder misused\s+github\.token\s+elsewhere/)
  expect(texts[1]).toMatch(/POST api\.github\.com\/graphql\s+refused\s+github\.token\s+denied/)
  expect(texts[2]).toMatch(/without a secret\s+github\s[\s\S]*2 masked in the reply/)
  expect(texts[3]).toMatch(
    /GET api\.github\.com\/repos\/acme\/shop\s+with the secret[\s\S]*812 B out, 20 KiB in, 183 ms\s+200/,
  )
  await detail(page).getByRole('link', { name: 'Placeholder misused' }).waitFor()

  const which = page.getByRole('combobox', { name: 'Which requests' })
  await which.selectOption('refused')
  await eventually(async () => expect(await requests(page).count()).toBe(2))
  await which.selectOption('misused')
  await eventually(async () => expect(await requests(page).count()).toBe(1))
  // Whoever gets the link sees the same.
  await page.reload()
  await eventually(async () => expect(await requests(page).count()).toBe(1))
  await which.selectOption('tunnelled')
  await page.getByText('No such request.').waitFor()
  expect(complaints).toEqual([])
})

test('the placeholder leads to the credential whose secret was used', async () => {
  const { page } = operator
  const run = await start()
  const issued = await agent.client.post('/api/v1/credentials', { backend: 'github', run })
  await record(run, { credential_id: issued.body.id })
  await page.goto(`${origin}/console/runs/${run}`)
  await requests(page).getByRole('link', { name: 'github.token' }).click()
  await page.getByRole('article', { name: 'Credential' }).waitFor()
  expect(new URL(page.url()).pathname).toBe(`/console/credentials/${issued.body.id}`)
})

test('what a proxy says is text: nothing of it is markup or a link', async () => {
  const { page, complaints } = operator
  const id = await start()
  await record(id, {
    method: '<b>GET</b>',
    authority: 'javascript:alert(1)',
    path: `/<img/src=x/onerror="window.pwned=1">${'long/'.repeat(60)}`,
    reason: '<script>window.pwned=1</script>',
    placeholder: '<i>github</i>.token',
    backend: '<u>github</u>',
  })
  await page.goto(`${origin}/console/runs/${id}`)
  await requests(page)
    .getByRole('button', { name: /^Show all \d+ characters$/ })
    .click()
  const text = (await requests(page).first().textContent()) ?? ''
  expect(text).toContain('<b>GET</b> javascript:alert(1)/<img/src=x/onerror="window.pwned=1">long/')
  expect(text).toContain('<i>github</i>.token')
  expect(await page.evaluate('window.pwned')).toBeUndefined()
  expect(
    await page.evaluate('document.querySelectorAll("main img, main script, main a[href^=java]").length'),
  ).toBe(0)
  expect(complaints).toEqual([])
})

test('of 120 requests the newest are shown, and the others on request', async () => {
  const { page, complaints } = operator
  const id = await start()
  await record(id, ...Array.from({ length: 120 }, (_, n) => ({ path: `/repos/acme/shop/issues/${n}` })))
  await page.goto(`${origin}/console/runs/${id}`)
  await page.getByText('The newest 50 are shown.').waitFor()
  expect((await requests(page).allInnerTexts())[0]).toContain('/issues/119')
  await button(page, 'Show 50 more').click()
  await page.getByText('The newest 100 are shown.').waitFor()
  await button(page, 'Show 50 more').click()
  await eventually(async () => expect(await requests(page).count()).toBe(120))
  expect((await requests(page).allInnerTexts())[119]).toContain('/issues/0')
  expect(await button(page, 'Show 50 more').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('the page of a backend has the rules that somebody named', async () => {
  const { page, complaints } = operator
  await page.goto(`${origin}/console/backends/github`)
  await page.getByText('What its kind says. ').waitFor()
  const uses = { deny: [{ methods: ['DELETE'], path: '/repos/**' }] }
  const put = await app.local.put('/v1/admin/backends/github', { uses })
  expect(put.status, put.text).toBe(200)
  await page.getByText('"path": "/repos/**"').waitFor()
  await button(page, 'Copy the rules').waitFor()
  expect(complaints).toEqual([])
})
