import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { openWindow, originOf, type Window } from '../support/console.ts'

/** What the page costs the network before anybody does anything, and whether it keeps to its policy. */
const BUDGET = 200 * 1_024
let app: TestApp
let origin: string
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = originOf(app)
})
afterAll(async () => {
  await app?.close()
})

/** Bytes by path, each as gzip; without the replies of the interface. */
type Sizes = Readonly<Record<string, number>>

/** Everything until a second after `load`, with nothing in the cache. */
async function load({ page, cdp, complaints }: Window, path: string): Promise<Sizes> {
  const paths = new Set<string>()
  page.on('request', (request) => {
    const { protocol, origin: from, pathname } = new URL(request.url())
    if (protocol.startsWith('http') && from !== origin) complaints.push(`asked ${from}`)
    if (pathname.startsWith('/console')) paths.add(pathname)
  })
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.goto(origin + path, { waitUntil: 'load' })
  await page.waitForTimeout(1_000)
  const { host } = new URL(origin)
  const sizes = [...paths].map(async (name) => {
    const reply = await app.raw({ path: name, headers: { host, 'accept-encoding': 'gzip' } })
    const packed = reply.headers['content-encoding'] !== undefined || name.endsWith('.woff2')
    const size = packed ? Number(reply.headers['content-length']) : gzipSync(reply.text).length
    return [name, size] as const
  })
  return Object.fromEntries(await Promise.all(sizes))
}

/** A page that is logged in, and has loaded nothing yet. */
async function loggedIn(): Promise<Window> {
  const body = { email: 'reader@example.com', scopes: ['admin:*'], backend_scopes: ['*'] }
  const invited = await app.local.post('/v1/admin/operators', body)
  const window = await openWindow()
  const first = await window.context.newPage()
  const followed = first.waitForResponse((reply) => reply.url().endsWith('/v1/console/login/link'))
  await first.goto(invited.body.invitation.url)
  expect((await followed).status()).toBe(200)
  await first.close()
  return window
}

const total = (sizes: Sizes) => Object.values(sizes).reduce((sum, size) => sum + size, 0)

test.each([
  ['the login', true, () => openWindow()],
  ['the first room', false, loggedIn],
])('%s arrives in 200 KB with its fonts, and breaks no rule of its policy', async (_name, isLogin, open) => {
  const window = await open()
  const { page, context, complaints } = window
  const sizes = await load(window, '/console')
  expect(await page.getByRole('button', { name: 'Log in with a passkey' }).count()).toBe(isLogin ? 1 : 0)
  expect(complaints).toEqual([])
  for (const part of [/\/console$/, /\.js$/, /\.css$/, /\.woff2$/])
    expect(Object.keys(sizes).some((name) => part.test(name))).toBe(true)
  expect(total(sizes), JSON.stringify(sizes, null, 2)).toBeLessThanOrEqual(BUDGET)
  await context.close()
})
