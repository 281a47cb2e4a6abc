import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { enterByLink, loginLink, openWindow, originOf, type Window } from '../support/console.ts'
import { LONG } from '../support/long.ts'
import { addCredentials } from '../support/many-credentials.ts'

/** A list of many pages, read to its end: each row once, in order, and no request for nothing. */
const COUNT = LONG ? 5_000 : 500
/** Less than a window, so that every row is drawn once. */
const STEP_PX = 900

let app: TestApp
let origin: string
let operator: Window
let ids: readonly string[]
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = originOf(app)
  await app.newBackend({ name: 'orders' })
  const agent = await app.newAgent({ name: 'swarm', scopes: ['orders'] })
  for (let n = 0; n < COUNT; n += 500) await addCredentials(app.core, 'orders', agent, 500)
  operator = await openWindow()
  await enterByLink(operator, await loginLink(app))
  ids = await all()
})
afterAll(async () => {
  await operator?.context.close()
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

/**
 * Requests of the list: those that were sent, and those that were answered. One that the page gives up is asked for again, or its
 * rows are missing. `requestfailed` does not say so: on a busy machine Chromium also reports a reply that the page has read in full.
 */
function watchRequests(page: Page) {
  const asked: string[] = []
  const answered: string[] = []
  const isOfList = (url: string) => url.includes('/v1/admin/tokens')
  page.on('request', (request) => isOfList(request.url()) && asked.push(request.url()))
  page.on('response', (reply) => isOfList(reply.url()) && reply.ok() && answered.push(reply.url()))
  return { asked, answered }
}

async function openList(page: Page) {
  page.removeAllListeners('request')
  page.removeAllListeners('response')
  // What the page before has asked for ends with it.
  await page.goto('about:blank')
  const requests = watchRequests(page)
  await page.goto(`${origin}/console/credentials`)
  const grid = page.getByRole('grid', { name: 'Credentials' })
  await grid.getByRole('row', { name: /swarm/ }).first().waitFor()
  await page.evaluate(WATCH)
  return { ...requests, grid }
}

const rowsSeen = async (page: Page) =>
  (await page.evaluate<[number, string][]>('[...window.seen]')).toSorted(([one], [other]) => one - other)

test(`scrolls through ${COUNT} credentials by the wheel: each is there once, in its order`, async () => {
  const { page, complaints } = operator
  const { asked, answered, grid } = await openList(page)
  await grid.hover()
  while ((await page.evaluate<number>('window.seen.size')) < COUNT) await page.mouse.wheel(0, STEP_PX)
  expect((await rowsSeen(page)).map(([, id]) => id)).toEqual(ids)
  expect(await page.evaluate('window.moved')).toBeUndefined()
  expect(answered.toSorted()).toEqual(asked.toSorted())
  // Each page was asked for once.
  expect(new Set(asked).size).toBe(asked.length)
  expect(complaints).toEqual([])
})

test('the key End goes to the last of what is read, and reads on', async () => {
  const { page, complaints } = operator
  const { asked, answered, grid } = await openList(page)
  await page.keyboard.press('j')
  const last = grid.getByRole('row', { name: /swarm/ }).last()
  const place = async () => Number(await last.getAttribute('aria-rowindex')) - 2
  while ((await place()) < COUNT - 1) await page.keyboard.press('End')
  for (const [at, id] of await rowsSeen(page)) expect(ids[at]).toBe(id)
  expect(await page.evaluate('window.moved')).toBeUndefined()
  expect(answered.toSorted()).toEqual(asked.toSorted())
  expect(new Set(asked).size).toBe(asked.length)
  expect(complaints).toEqual([])
})
