import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import {
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  startBrowser,
  type Window,
} from '../support/console.ts'
import { addCredentials } from '../support/many-credentials.ts'

/** A list of many pages, read to its end: each row once, in order, and no request for nothing. */
const COUNT = 5_000
/** Less than a window, so that every row is drawn once. */
const STEP_PX = 900

let app: TestApp
let browser: Browser
let origin: string
let operator: Window
let ids: readonly string[]
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = originOf(app)
  await app.newBackend({ name: 'orders' })
  const agent = await app.newAgent({ name: 'swarm', scopes: ['orders'] })
  for (let n = 0; n < COUNT; n += 1_000) await addCredentials(app.core, 'orders', agent, 1_000)
  browser = await startBrowser()
  operator = await openWindow(browser)
  await enterByLink(operator, await loginLink(app))
  ids = await all()
})
afterAll(async () => {
  await browser?.close()
  await app?.close()
})

/** As the interface lists them. */
async function all(): Promise<readonly string[]> {
  const found: string[] = []
  let path: string | undefined = '/v1/admin/tokens?limit=1000'
  while (path !== undefined) {
    const reply = await app.local.get(path)
    found.push(...reply.body.map(({ id }: { id: string }) => id))
    const next = /<([^>]+)>; rel="next"/.exec(reply.headers.get('link') ?? '')?.[1]
    path = next === undefined ? undefined : next.replace(/^https?:\/\/[^/]+/, '')
  }
  return found
}

/** Runs in the page: keeps the id of every row that is drawn, by its place. */
const WATCH = `
  window.seen = new Map()
  const grid = document.querySelector('[role=grid]')
  const look = () => {
    for (const row of grid.querySelectorAll('[role=row][id]')) {
      const place = Number(row.getAttribute('aria-rowindex')) - 2
      const id = /cred_\\w+/.exec(row.querySelector('input').getAttribute('aria-label'))[0]
      const before = window.seen.get(place)
      if (before !== undefined && before !== id) window.moved = place
      window.seen.set(place, id)
    }
  }
  new MutationObserver(look).observe(grid, { subtree: true, childList: true, attributes: true })
  look()`

test.each(['wheel', 'PageDown'] as const)(`scrolls through ${COUNT} credentials by %s`, async (by) => {
  const { page, complaints } = operator
  const asked: string[] = []
  const dropped: string[] = []
  const isOfList = (url: string) => url.includes('/v1/admin/tokens')
  page.on('request', (request) => isOfList(request.url()) && asked.push(request.url()))
  page.on('requestfailed', (request) => isOfList(request.url()) && dropped.push(request.url()))
  await page.goto(`${origin}/console/credentials`)
  const grid = page.getByRole('grid', { name: 'Credentials' })
  await grid.getByRole('row', { name: /swarm/ }).first().waitFor()
  await page.evaluate(WATCH)
  if (by === 'wheel') await grid.hover()
  const count = () => page.evaluate<number>('window.seen.size')
  for (let seen = await count(); seen < COUNT; ) {
    if (by === 'wheel') await page.mouse.wheel(0, STEP_PX)
    else await page.keyboard.press('PageDown')
    seen = await count()
  }
  const seen = await page.evaluate<[number, string][]>('[...window.seen]')
  const shown = seen.toSorted(([one], [other]) => one - other).map(([, id]) => id)
  expect(shown).toEqual(ids)
  expect(await page.evaluate('window.moved')).toBeUndefined()
  expect(dropped).toEqual([])
  // Each page was asked for once.
  expect(new Set(asked).size).toBe(asked.length)
  expect(complaints).toEqual([])
  page.removeAllListeners('request')
  page.removeAllListeners('requestfailed')
})
