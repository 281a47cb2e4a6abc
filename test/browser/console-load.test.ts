import { gzipSync } from 'node:zlib'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'

/** What the page costs the network before anybody does anything, and whether it keeps to its policy. */
const BUDGET = 200 * 1_024
let app: TestApp
let browser: Browser
let origin: string
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = app.url.replace('127.0.0.1', 'localhost')
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  })
})
afterAll(async () => {
  await browser?.close()
  await app?.close()
})

interface Loaded {
  /** Bytes by path, each as gzip; without the replies of the interface. */
  readonly sizes: Readonly<Record<string, number>>
  /** What the browser complained of. */
  readonly complaints: readonly string[]
}

/** Everything until a second after `load`, with nothing in the cache. */
async function load(page: Page, path: string): Promise<Loaded> {
  const complaints: string[] = []
  const paths = new Set<string>()
  page.on('request', (request) => {
    const { protocol, origin: from, pathname } = new URL(request.url())
    if (protocol.startsWith('http') && from !== origin) complaints.push(`asked ${from}`)
    if (pathname.startsWith('/console')) paths.add(pathname)
  })
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  const session = await page.context().newCDPSession(page)
  await session.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('CSP', event.violatedDirective, event.blockedURI))`,
  )
  await page.goto(origin + path, { waitUntil: 'load' })
  await page.waitForTimeout(1_000)
  const { host } = new URL(origin)
  const sizes = [...paths].map(async (name) => {
    const reply = await app.raw({ path: name, headers: { host, 'accept-encoding': 'gzip' } })
    const packed = reply.headers['content-encoding'] !== undefined || name.endsWith('.woff2')
    const size = packed ? Number(reply.headers['content-length']) : gzipSync(reply.text).length
    return [name, size] as const
  })
  return { sizes: Object.fromEntries(await Promise.all(sizes)), complaints }
}

/** A page that is logged in, in a browser of its own. */
async function loggedIn(): Promise<Page> {
  const body = { email: 'reader@example.com', scopes: ['admin:*'], backend_scopes: ['*'] }
  const invited = await app.local.post('/v1/admin/operators', body)
  const context = await browser.newContext()
  const page = await context.newPage()
  const followed = page.waitForResponse((reply) => reply.url().endsWith('/v1/console/login/link'))
  await page.goto(invited.body.invitation.url)
  expect((await followed).status()).toBe(200)
  await page.close()
  return context.newPage()
}

const total = (sizes: Loaded['sizes']) => Object.values(sizes).reduce((sum, size) => sum + size, 0)

test.each([
  ['the login', true, () => browser.newPage()],
  ['the first room', false, loggedIn],
])('%s arrives in 200 KB with its fonts, and breaks no rule of its policy', async (_name, isLogin, open) => {
  const page = await open()
  const { sizes, complaints } = await load(page, '/console')
  expect(await page.getByRole('button', { name: 'Log in with a passkey' }).count()).toBe(isLogin ? 1 : 0)
  expect(complaints).toEqual([])
  for (const part of [/\/console$/, /\.js$/, /\.css$/, /\.woff2$/])
    expect(Object.keys(sizes).some((name) => part.test(name))).toBe(true)
  expect(total(sizes), JSON.stringify(sizes, null, 2)).toBeLessThanOrEqual(BUDGET)
  await page.context().close()
})
