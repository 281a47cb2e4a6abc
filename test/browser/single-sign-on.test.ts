import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import AxeBuilder from '@axe-core/playwright'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { button, frameOf, openWindow, type Window } from '../support/console.ts'
import { freePort } from '../support/free-port.ts'
import { type SsoServer, startSsoServer } from '../support/sso-server.ts'

/** People who log in by single sign-on, and confirm by another login in another tab. */
let app: TestApp
let provider: SsoServer
let directory: string
let origin: string
let mine: Window
let page: Page
const SUBJECT = 'Carol-00u1'

beforeAll(async () => {
  await buildWeb()
  directory = await mkdtemp(join(tmpdir(), 'mayfly-sso-'))
  const port = await freePort()
  origin = `http://localhost:${port}`
  provider = await startSsoServer({ redirect: `${origin}/console/sso` })
  app = await startApp({
    argv: { listen: `127.0.0.1:${port}`, issuer: `http://127.0.0.1:${port}` },
    yaml: JSON.stringify({
      sso: [
        await provider.entry(directory, { name: 'Company' }),
        await provider.entry(directory, { name: 'Partner', issuer: `http://127.0.0.1:${await freePort()}` }),
      ],
    }),
  })
  provider.people.set(SUBJECT, {
    name: 'Carol',
    email: 'carol@company.example',
    email_verified: true,
    groups: ['admins'],
  })
  provider.people.set('dave', { name: 'Dave', groups: ['Admins', 'everyone'] })
  mine = await openWindow()
  page = mine.page
}, 60_000)
afterAll(async () => {
  await mine?.context.close()
  await app?.close()
  await provider?.close()
  if (directory !== undefined) await rm(directory, { recursive: true })
})

/** Nobody is logged in here, as in a browser that was just installed. */
const forget = async () => {
  await mine.context.clearCookies()
  await page.goto(`${origin}/console`)
  await page.evaluate(() => {
    localStorage.clear()
    sessionStorage.clear()
  })
}
const logInButton = () => button(page, 'Log in with Company (single sign-on)')
const logIn = async (subject: string) => {
  // The provider would remember who was there.
  await mine.context.clearCookies({ domain: '127.0.0.1' })
  provider.user = subject
  await logInButton().click()
}
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]

test('a provider that is away, one that refuses, and groups that give nothing are said with the next step', async () => {
  await forget()
  await page.goto(`${origin}/console/agents?q=ci`)
  await button(page, 'Log in with Partner (single sign-on)').click()
  await page
    .getByRole('alert')
    .filter({ hasText: /passkey/i })
    .waitFor()
  await button(page, 'Log in with a passkey').waitFor()

  await logIn('')
  await page.getByRole('heading', { name: 'The login has failed' }).waitFor()
  await page.getByRole('alert').filter({ hasText: 'did not log you in' }).waitFor()
  expect(page.url()).toBe(`${origin}/console/sso`)
  await page.getByRole('link', { name: 'To the page to log in' }).click()
  await page.waitForURL(`${origin}/console/agents?q=ci`)

  await logIn('dave')
  await page.getByRole('alert').filter({ hasText: 'nothing here is given to any of your groups' }).waitFor()
  const { violations } = await new AxeBuilder({ page }).analyze()
  expect(violations.map(({ id }) => id)).toEqual([])
  expect((await app.local.get('/v1/admin/sessions')).body).toEqual([])

  // Somebody sends the answer to a login of their own, or one that is used up.
  await page.goto(`${origin}/console/sso?code=stolen&state=theirs&iss=${encodeURIComponent(provider.issuer)}`)
  await page.getByText('This tab did not begin a login.').waitFor()
  expect(page.url()).toBe(`${origin}/console/sso`)
  expect(mine.complaints).toEqual([])
})

test('logs in, is back where they wanted to go, and confirms by another login in a second tab', async () => {
  await forget()
  await page.goto(`${origin}/console/operators?sort=x`)
  await logIn(SUBJECT)
  await frameOf(page).getByText('carol@company.example').waitFor()
  expect(page.url()).toBe(`${origin}/console/operators?sort=x`)
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  expect(await mine.context.cookies(origin)).toMatchObject([{ name: 'mayfly', sameSite: 'Strict' }])
  await page.getByRole('row').filter({ hasText: 'Carol' }).getByText('Company (single sign-on)').waitFor()

  await button(page, 'Invite…').click()
  await page.getByText('You confirm by logging in again at Company.').waitFor()
  await page.getByLabel('E-mail address').fill('erin@example.com')
  await page.getByLabel('Administers').fill('admin:audit:read')
  await button(page, 'Invite them').click()
  const again = page.getByRole('dialog', { name: 'Log in again at Company to confirm' })
  await again.waitFor()
  const { violations } = await new AxeBuilder({ page }).analyze()
  expect(violations.map(({ id }) => id)).toEqual([])
  await again.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('alert').filter({ hasText: 'You did not confirm it. Nothing was changed.' }).waitFor()
  // Nothing that was typed is lost.
  expect(await page.getByLabel('E-mail address').inputValue()).toBe('erin@example.com')
  await button(page, 'Invite them').click()

  // Somebody else logs in there: the request still waits.
  provider.user = 'dave'
  const opened = mine.context.waitForEvent('page')
  await again.getByRole('link', { name: 'Log in again at Company' }).click()
  const wrong = await opened
  await wrong.getByRole('heading', { name: 'Nothing is confirmed' }).waitFor()
  await wrong.close()
  expect((await app.local.get('/v1/admin/operators')).body).toHaveLength(1)
  provider.user = SUBJECT
  const right = mine.context.waitForEvent('page')
  await again.getByRole('link', { name: 'Open it again' }).click()
  const tab = await right
  // It closes itself.
  if (!tab.isClosed()) await tab.waitForEvent('close')
  await page.getByRole('heading', { name: 'The link for erin@example.com' }).waitFor()
  expect(await newest('operator.invited')).toMatchObject({
    actor: 'operator:carol@company.example',
    details: { confirmation: { sso: { issuer: provider.issuer, subject: SUBJECT } } },
  })
  await button(page, 'Done, hide it').click()
  expect(mine.complaints).toEqual([])
})

test('has neither passkeys nor scopes to change, and is named by issuer and subject without an address', async () => {
  await forget()
  await page.goto(`${origin}/console/me`)
  provider.people.set(SUBJECT, { groups: 'admins', email: 'carol@company.example', email_verified: false })
  await logIn(SUBJECT)
  await page.getByText('by single sign-on, from 127.0.0.1').first().waitFor()
  expect(await page.getByRole('heading', { name: 'Passkeys' }).count()).toBe(0)
  const who = `${provider.issuer} / ${SUBJECT}`
  await frameOf(page).getByText(who).waitFor()
  await page.goto(`${origin}/console/operators`)
  await page.getByRole('row').filter({ hasText: who }).click()
  const person = page.getByRole('article', { name: 'Operator' })
  await person.getByText('from the groups at the last login').first().waitFor()
  expect(await person.getByRole('button', { name: /Change|Invite/ }).count()).toBe(0)
  await person.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('They can log in again as long as their groups at Company').waitFor()
  const actor = encodeURIComponent(`operator:${provider.issuer}#${SUBJECT}`)
  const entries = (await app.local.get(`/v1/admin/audit?actor=${actor}`)).body
  expect(entries.map(({ action }: { action: string }) => action)).toContain('session.started')
  const other = encodeURIComponent(`operator:${provider.issuer}#${SUBJECT.toLowerCase()}`)
  expect((await app.local.get(`/v1/admin/audit?actor=${other}`)).body).toEqual([])
  expect(mine.complaints).toEqual([])
})
