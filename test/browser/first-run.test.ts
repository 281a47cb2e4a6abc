import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { button, loginLink, openWindow } from '../support/console.ts'
import { freePort } from '../support/free-port.ts'
import { byPalette, type Hands, handsOf, KEYBOARD, MOUSE } from '../support/hands.ts'
import { startServerProcess } from '../support/server-process.ts'
import { openUpstreamDatabase, type UpstreamDatabase } from '../support/upstream-database.ts'

/** From the link that a new server prints to a first credential, without a terminal. */
let upstream: UpstreamDatabase
beforeAll(async () => {
  await buildWeb()
  upstream = await openUpstreamDatabase()
})
afterAll(async () => {
  await upstream?.close()
})

const field = (page: Page, label: string) => page.getByLabel(label, { exact: true })
const guide = (page: Page) => page.getByRole('region', { name: 'To the first credential' })

/** Follows the link of a new server, and says who one is. */
async function become(page: Page, link: string, hands: Hands): Promise<void> {
  await page.goto(link)
  await hands.write(field(page, 'Name'), 'Alice')
  await hands.write(field(page, 'E-mail address'), 'alice@example.com')
  await hands.press(button(page, 'Become the first operator'))
  await guide(page).waitFor()
}

/** The last step of the guide, and what it shows then. */
async function tryIt(page: Page, backend: string, hands: Hands): Promise<void> {
  await hands.press(guide(page).getByRole('button', { name: 'Try it', exact: true }))
  await guide(page)
    .getByText(/^It (works from end to end|issues; the credential ends)/)
    .waitFor()
  await guide(page).getByText('Now from a terminal').waitFor()
  await guide(page).getByText(`mayfly get ${backend} --ttl 10m`).waitFor()
}

/** As `npm start` does, in a directory of its own. */
async function startFresh() {
  const dataDir = await mkdtemp(join(tmpdir(), 'mayfly-first-'))
  const server = await startServerProcess({
    dataDir,
    flags: ['--quickstart', '--listen', `127.0.0.1:${await freePort()}`],
  })
  const link = /\S+#link=mfl_[0-9a-f]{64}/.exec(server.logged())?.[0] ?? ''
  return {
    link,
    audit: async () => (await server.call<{ action: string }[]>(undefined, 'GET', '/v1/admin/audit')).body,
    async [Symbol.asyncDispose]() {
      await server.terminate()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

test.each(handsOf(MOUSE))('after npm start one step is left, by $name', async (hands) => {
  await using server = await startFresh()
  const { page, context, complaints } = await openWindow()
  await become(page, server.link, hands)
  const steps = guide(page).getByRole('listitem')
  await steps.filter({ hasText: '1. A backend' }).getByText('demo').waitFor()
  await steps.filter({ hasText: '2. An agent' }).getByText('first-agent').waitFor()
  await tryIt(page, 'demo', hands)
  const actions = (await server.audit()).map(({ action }) => action)
  expect(actions).toEqual(expect.arrayContaining(['credential.issued', 'backend.tried']))
  expect(complaints).toEqual([])
  await context.close()
})

test.each(handsOf(KEYBOARD))(
  'on a server that has nothing all three steps are done, by $name',
  async (hands) => {
    const app = await startApp({ ownIssuer: true })
    const { page, context, complaints } = await openWindow()
    await become(page, await loginLink(app), hands)
    const step = (title: string) => guide(page).getByRole('listitem').filter({ hasText: title })
    await hands.write(step('1. A backend').getByLabel('Name'), 'shop')
    await hands.press(button(page, 'Add the backend'))
    await hands.write(step('2. An agent').getByLabel('Name'), 'ci-build')
    expect(await step('2. An agent').getByLabel('Scope').inputValue()).toBe('shop')
    await hands.press(button(page, 'Create the agent'))
    const secrets = page.getByRole('region', { name: 'The secrets of ci-build' })
    await secrets.waitFor()
    const token = (await secrets.locator('code').first().textContent()) ?? ''
    await tryIt(page, 'shop', hands)
    // What it shows works.
    expect((await app.as(token).get('/v1/status')).body.name).toBe('ci-build')
    // The secrets are gone with the page, and so is the guide, as the server is not new any more.
    await page.reload()
    await page.getByText('Live credentials').first().waitFor()
    expect(await guide(page).count()).toBe(0)
    expect(await page.content()).not.toMatch(/mf[a-z]_[0-9a-f]{16}/)
    expect(complaints).toEqual([])
    await context.close()
    await app.close()
  },
)

test.each(handsOf(MOUSE))('adds backends by the forms of their kinds, by $name', async (hands) => {
  const app = await startApp({ ownIssuer: true })
  const { page, context, complaints } = await openWindow()
  await become(page, await loginLink(app), hands)
  await hands.press(page.getByRole('link', { name: /^Another kind/ }))
  await hands.press(page.getByRole('link', { name: /\bjwt\b/ }))
  await hands.write(field(page, 'Name (optional)'), 'signed')
  await hands.write(field(page, 'audience'), 'https://api.example.com')
  await hands.press(button(page, 'Add it'))
  await page.getByText('It is stored.').waitFor()
  await hands.press(button(page, 'Try it'))
  await page.getByText(/^It (works|issues)/).waitFor()

  if (hands === MOUSE) await button(page, 'Add another').click()
  else await byPalette(page, 'Add a backend')
  await hands.write(page.getByLabel('Find a kind'), 'postgres')
  await page.keyboard.press('Enter')
  await addDatabase(app, page, hands)
  expect(complaints).toEqual([])
  await context.close()
  await app.close()
})

/** A login that lacks a grant is told which; what was typed stays until the grant is there. */
async function addDatabase(app: TestApp, page: Page, hands: Hands): Promise<void> {
  const role = `console_${randomBytes(6).toString('hex')}`
  const { root, server, database } = upstream
  await root.query(`CREATE ROLE ${role} LOGIN PASSWORD 'typed-once'`)
  const typed = {
    'Name (optional)': role.replace('_', '-'),
    host: server.host,
    'port (optional)': String(server.port),
    database: database.name,
    username: role,
    'password (optional)': 'typed-once',
  }
  await page.getByRole('heading', { name: 'PostgreSQL' }).waitFor()
  await openParts(page, hands)
  for (const [label, text] of Object.entries(typed)) await hands.write(field(page, label), text)
  await hands.choose(field(page, 'grant (optional)'), 'read-only')
  await hands.tick(field(page, 'local'))
  await hands.press(button(page, 'Add it'))
  const alert = page.getByRole('alert')
  await alert.waitFor()
  expect(await alert.textContent()).toMatch(new RegExp(`ALTER ROLE "?${role}"? CREATEROLE`))
  await page.getByText('What you typed is still here.').waitFor()
  for (const [label, text] of Object.entries(typed))
    expect([label, await field(page, label).inputValue()]).toEqual([label, text])
  expect((await app.local.get('/v1/admin/backends')).body).toHaveLength(1)

  await root.query(`ALTER ROLE ${role} CREATEROLE; GRANT CREATE ON DATABASE ${database.name} TO ${role}`)
  await hands.press(button(page, 'Add it'))
  await page.getByText('It is stored.').waitFor()
  await hands.press(button(page, 'Try it'))
  await page.getByText('It works from end to end').waitFor()
  const [{ id }] = (await app.local.get('/v1/admin/tokens?limit=1')).body
  const { rows } = await root.query('SELECT 1 FROM pg_roles WHERE rolname = $1 AND rolcanlogin', [
    id.replace('cred_', 'mf_'),
  ])
  expect(rows).toEqual([])
}

/** The parts of the form that most people leave alone. */
async function openParts(page: Page, hands: Hands): Promise<void> {
  await hands.press(page.locator('summary', { hasText: 'More of the configuration' }))
}
