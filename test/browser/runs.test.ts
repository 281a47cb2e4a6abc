import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
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
import { byPalette, handsOf, KEYBOARD, MOUSE } from '../support/hands.ts'

/** Runs in a real browser: what lives and until when, what was issued for one, and how it ended. */
const MARKUP = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
const BIDI = 'nightly \u202Etroper\u2066 \u200b\ufeff\u0007'
const PURPOSE = `${BIDI} ${MARKUP} ${'very '.repeat(80)}long`
/** More than are shown at first, so that the rest must be asked for. */
const MANY = 120

let app: TestApp
let origin: string
let operator: Window
let agent: NewAgent
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true, jobs: true, yaml: 'limits:\n  max_active_per_agent: 1000\n' })
  origin = originOf(app)
  await app.newBackend({ name: 'orders' })
  await app.newBackend({ name: 'stock' })
  agent = await app.newAgent({ name: 'worker', scopes: ['orders', 'stock'] })
  operator = await openWindow()
  await enterByLink(operator, await loginLink(app))
}, 120_000)
afterAll(async () => {
  await operator?.context.close()
  await app?.close()
})

async function start(body: { purpose?: string; heartbeat?: string }, by = agent): Promise<string> {
  const reply = await by.client.post('/v1/runs', body)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.id
}

async function issue(backend: string, run: string, by = agent): Promise<string> {
  const reply = await by.client.post('/api/v1/credentials', { backend, scopes: [`${backend}:read`], run })
  expect(reply.status, reply.text).toBe(201)
  return reply.body.id
}

const detail = (page: Page) => page.getByRole('article', { name: 'Run' })
const bars = (page: Page) =>
  page.getByRole('list', { name: 'Credentials, newest first' }).getByRole('listitem')
const row = (page: Page, name: RegExp) => page.getByRole('row', { name }).first()

test.each(handsOf(MOUSE))(
  'a run appears, is opened and ended, and its credentials end with it, by $name',
  async (hands) => {
    const { page, complaints } = operator
    await page.goto(`${origin}/console`)
    await untilLive(page)
    for (const key of ['g', 'r']) await page.keyboard.press(key)
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    const id = await start({ purpose: 'the nightly report', heartbeat: '1h' })
    const credentials = [await issue('orders', id), await issue('stock', id)]
    // Nobody has loaded the page again.
    await row(page, /the nightly report/).click()
    await bars(page).filter({ hasText: 'orders' }).getByText('live').waitFor()
    expect(await bars(page).count()).toBe(2)
    await detail(page).getByText('Timeline: 2 live').waitFor()
    await detail(page).getByText('Run started').waitFor()
    await hands.press(button(page, 'End this run'))
    await page.getByRole('dialog', { name: 'End this run of worker?' }).waitFor()
    await hands.press(button(page, 'End the run'))
    await page.getByText('The run has ended, with its credentials.').waitFor()
    await detail(page).getByText('An administrator ended it.').waitFor()
    await detail(page).getByText('alice@example.com').first().waitFor()
    await detail(page).getByText('Run ended').waitFor()
    await eventually(async () => expect(await bars(page).filter({ hasText: 'revoked' }).count()).toBe(2))
    expect(await button(page, /^End this run/).getAttribute('aria-disabled')).toBe('true')
    for (const one of credentials)
      expect((await app.local.get(`/v1/admin/tokens/${one}`)).body).toMatchObject({ end_reason: 'run_ended' })
    const [entry] = (await app.local.get(`/v1/admin/audit?run=${id}&action=run.ended`)).body
    expect(entry).toMatchObject({ actor: 'operator:alice@example.com', details: { reason: 'ended_by' } })
    // It is no longer among those that live.
    await eventually(async () => expect(await row(page, /the nightly report/).count()).toBe(0))
    expect(complaints).toEqual([])
  },
)

test('one whose heartbeat stops ends while one looks, and says why', async () => {
  const { page, complaints } = operator
  const id = await start({ purpose: 'soon dead', heartbeat: '1s' })
  await issue('orders', id)
  await page.goto(`${origin}/console/runs/${id}`)
  await detail(page).getByText('It did not say any more that it lives.').waitFor({ timeout: 30_000 })
  await detail(page).getByText('no heartbeat').waitFor()
  await bars(page).getByText('revoked').waitFor()
  await page.goto(`${origin}/console/runs?state=ended`)
  await row(page, /soon dead/)
    .getByText('no heartbeat')
    .waitFor()
  expect(complaints).toEqual([])
}, 60_000)

test('beats, of which no event tells, are seen: the time until dead is read again', async () => {
  const { page } = operator
  const id = await start({ purpose: 'beating', heartbeat: '3s' })
  await page.goto(`${origin}/console/runs/${id}`)
  const end = detail(page).locator('time[datetime]').first()
  const before = (await end.getAttribute('datetime')) ?? ''
  await eventually(async () => {
    await agent.client.post(`/v1/runs/${id}/heartbeat`)
    expect(((await end.getAttribute('datetime')) ?? '') > before).toBe(true)
  }, 20_000)
  expect((await agent.client.delete(`/v1/runs/${id}`)).status).toBe(204)
  await detail(page).getByText('Its agent ended it: the work was done.').waitFor()
}, 60_000)

test('a hostile purpose is text, in the list and whole on request', async () => {
  const { page, complaints } = operator
  const id = await start({ purpose: PURPOSE, heartbeat: '1h' })
  await page.goto(`${origin}/console/runs?agent=worker`)
  await row(page, /⟨U\+202E⟩/).click()
  await detail(page)
    .getByRole('button', { name: `Show all ${PURPOSE.length} characters` })
    .click()
  const text = (await detail(page).textContent()) ?? ''
  expect(text).toContain(MARKUP)
  expect(text).toContain('⟨U+0007⟩')
  expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  expect(await page.evaluate('window.pwned')).toBeUndefined()
  expect(
    await page.evaluate('document.querySelectorAll("main img, main script, main a[href^=http]").length'),
  ).toBe(0)
  expect((await agent.client.delete(`/v1/runs/${id}`)).status).toBe(204)
  expect(complaints).toEqual([])
})

test(`of ${MANY} credentials the newest are shown, and the others on request`, async () => {
  const { page, complaints } = operator
  const id = await start({ heartbeat: '1h' })
  for (let n = 0; n < MANY; n += 1) await issue('orders', id)
  await page.goto(`${origin}/console/runs/${id}`)
  await detail(page).getByText(`Timeline: ${MANY} live`).waitFor()
  await page.getByText('The newest 50 are shown.').waitFor()
  expect(await bars(page).count()).toBe(50)
  await button(page, 'Show 50 more').click()
  await page.getByText('The newest 100 are shown.').waitFor()
  await button(page, 'Show 50 more').click()
  await eventually(async () => expect(await bars(page).count()).toBe(MANY))
  expect(await button(page, 'Show 50 more').count()).toBe(0)
  await detail(page).getByRole('link', { name: 'All in Credentials' }).click()
  await page.waitForURL(/\/console\/credentials\?run=run_.*status=any/)
  await row(page, /orders/).waitFor()
  // All of the agent would be more than what is listed.
  expect(await button(page, /^End all of/).count()).toBe(0)
  expect(complaints).toEqual([])
}, 60_000)

test('from an agent, a credential and an entry one comes to the run, by the keyboard alone', async () => {
  const { page, complaints } = operator
  const other = await app.newAgent({ name: 'linked', scopes: ['orders'] })
  const id = await start({ purpose: 'linked work', heartbeat: '1h' }, other)
  const credential = await issue('orders', id, other)
  await page.goto(`${origin}/console/agents/linked`)
  await KEYBOARD.press(page.getByRole('link', { name: 'Its runs' }))
  await page.waitForURL(/\/console\/runs\?agent=linked/)
  await row(page, /linked work/).waitFor()
  await byPalette(page, credential)
  await KEYBOARD.press(page.getByRole('article', { name: 'Credential' }).getByRole('link', { name: id }))
  await detail(page).getByText('linked work').waitFor()
  await KEYBOARD.press(detail(page).getByRole('link', { name: 'Run started' }))
  const entry = page.getByRole('article', { name: 'Entry of the audit' })
  await KEYBOARD.press(entry.getByRole('link', { name: 'All of this run' }))
  await page.waitForURL(new RegExp(`/console/activity\\?run=${id}`))
  await eventually(async () =>
    expect(await page.getByRole('grid', { name: 'Activity' }).getByRole('row').count()).toBe(3),
  )
  await byPalette(page, id)
  await detail(page).waitFor()
  await byPalette(page, 'End the run')
  await KEYBOARD.press(button(page, 'End the run'))
  await detail(page).getByText('An administrator ended it.').waitFor()
  await page.keyboard.press('Escape')
  await detail(page).waitFor({ state: 'detached' })
  expect(complaints).toEqual([])
})

test('who may only read sees why they may not end it, and what they do not see of it', async () => {
  const id = await start({ purpose: 'looked at', heartbeat: '1h' })
  await issue('orders', id)
  const reader = await openWindow()
  const invited = await app.local.post('/v1/admin/operators', {
    email: 'reader@example.com',
    scopes: ['admin:agents:read'],
  })
  await enterByLink(reader, invited.body.invitation.url)
  await reader.page.goto(`${origin}/console/runs/${id}`)
  await detail(reader.page).getByText('looked at').waitFor()
  const end = button(reader.page, /^End this run/)
  expect(await end.getAttribute('aria-disabled')).toBe('true')
  expect(await end.getAttribute('title')).toBe('Your scopes do not include this.')
  await reader.page.getByText('Its credentials: Your scopes do not include this.').waitFor()
  expect(reader.complaints).toEqual([])
  await reader.context.close()
})

test('nothing runs, and a run that is not known', async () => {
  const { page } = operator
  await app.newAgent({ name: 'idle', scopes: ['orders'] })
  await page.goto(`${origin}/console/runs?agent=idle`)
  await page.getByText('No run matches').waitFor()
  await page.goto(`${origin}/console/runs/run_06dzw5k9q2v6x1m8t3c7n4p0hb`)
  await page.getByText('No run has this id').waitFor()
})
