import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { bundle } from '../../scripts/bundle/bundle.ts'
import { newHome, type Spawned, spawnCli } from '../cli/support.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import {
  button,
  enterByLink,
  loginLink,
  openWindow,
  registerPasskey,
  type Window,
} from '../support/console.ts'

/** The built command, a real browser, and a person between them. */
const dist = join(import.meta.dirname, '../../node_modules/.cache/mayfly-command-line')
const main = join(dist, 'bin', 'mayfly.cjs')
let app: TestApp
let mine: Window
let home: string
let env: Record<string, string>

beforeAll(async () => {
  await buildWeb()
  await rm(dist, { recursive: true, force: true })
  await bundle({ form: 'files', version: '9.8.7', directory: join(dist, 'bin'), flags: [] })
  app = await startApp({ ownIssuer: true })
  mine = await openWindow()
  await enterByLink(mine, await loginLink(app))
  await registerPasskey(mine, 'laptop')
}, 120_000)
afterAll(async () => {
  await mine?.context.close()
  await app?.close()
  await rm(dist, { recursive: true, force: true })
})

beforeEach(async () => {
  const { home: fresh, env: bare } = await newHome()
  home = fresh
  const bin = join(home, 'bin')
  await mkdir(bin)
  // The browser is driven by this test, which only needs to know what it is to open.
  await writeFile(
    join(bin, 'xdg-open'),
    `#!/bin/sh\nprintf %s "$1" >"${home}/opened.new" && mv "${home}/opened.new" "${home}/opened"\n`,
  )
  await chmod(join(bin, 'xdg-open'), 0o755)
  env = { ...bare, PATH: `${bin}:${bare['PATH']}`, MAYFLY_SERVER: app.url, DISPLAY: ':0' }
  app.advance(60_000)
})

const mayfly = (...argv: string[]): Spawned => spawnCli(argv, { env, main })
const opened = () => vi.waitFor(() => readFile(join(home, 'opened'), 'utf8'), { timeout: 60_000 })
const asking = () => mine.page.getByRole('group', { name: 'The command that asks' })
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]

test('login --browser opens the page, and ends on one that says so', async () => {
  const { page, complaints } = mine
  const login = mayfly('login', '--browser')
  await page.goto(await opened())
  await asking().getByText('127.0.0.1:').waitFor()
  await button(page, 'Allow').click()
  await page.waitForURL(/^http:\/\/127\.0\.0\.1:\d+\/callback\?/)
  await page.getByText('You may close this tab, and go back to the terminal.').waitFor()
  expect(await page.locator('script').count()).toBe(0)
  expect(complaints).toEqual([])
  expect(await login.ended).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Logged in to ${app.url} as alice@example.com, an operator.`),
  })
  expect(await mayfly('agent', 'create', 'by-alice', '--scope', 'demo').ended).toMatchObject({ code: 0 })
  expect(await newest('agent.created')).toMatchObject({ actor: 'operator:alice@example.com' })
  // Who reloads the page, or goes back to it, reaches nobody.
  await expect(page.reload()).rejects.toThrow('ERR_CONNECTION_REFUSED')
  expect(await mayfly('logout').ended).toMatchObject({ code: 0 })
  expect((await newest('session.ended')).details).toMatchObject({ reason: 'ended' })
})

test('what is denied there ends the command', async () => {
  const { page } = mine
  const login = mayfly('login', '--browser')
  await page.goto(await opened())
  await button(page, 'Deny').click()
  expect(await login.ended).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('mayfly: The login was not allowed.'),
  })
})

test('login --device shows what the person types on another machine', async () => {
  const { page } = mine
  const login = mayfly('login', '--device')
  const said = await login.said(/\n {4}[0-9A-Z]{4}-[0-9A-Z]{4}\n/)
  const [, address = ''] = /^(http\S+)$/m.exec(said) ?? []
  const [, code = ''] = /^ {4}(\S+)$/m.exec(said) ?? []
  await page.goto(address)
  await page.getByLabel('The code that your terminal shows').fill(code)
  await page.keyboard.press('Enter')
  await asking().getByText('127.0.0.1').waitFor()
  await button(page, 'Allow').click()
  await page.getByText('Go back to your terminal').waitFor()
  expect(await login.ended).toMatchObject({ code: 0 })
  expect(await mayfly('status').ended).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Operator: +alice@example\.com, ends in 12 h$/m),
  })
})
