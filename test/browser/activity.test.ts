import { readFile } from 'node:fs/promises'
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
import { LONG } from '../support/long.ts'

/** The audit in the browser: filters, a credential's story, downloads, and what happens now. */
const EVENTS = LONG ? 10_000 : 500
const AT_ONCE = 250
/** What the page may keep beside the entries that it shows, in bytes. */
const GROWTH = 4 * 1_024 * 1_024

let app: TestApp
let origin: string
let operator: Window
let agent: NewAgent
let credential: string
beforeAll(async () => {
  await buildWeb()
  app = await startApp({ ownIssuer: true })
  origin = originOf(app)
  await app.newBackend({ name: 'orders' })
  await app.newBackend({ name: 'stock' })
  agent = await app.newAgent({ name: 'reader', scopes: ['orders', 'stock'] })
  const other = await app.newAgent({ name: 'other', scopes: ['orders'] })
  credential = await issue(agent, 'orders')
  await issue(agent, 'stock')
  await issue(other, 'orders')
  expect((await agent.client.delete(`/api/v1/credentials/${credential}`)).status).toBe(200)
  operator = await openWindow({ acceptDownloads: true })
  await enterByLink(operator, await loginLink(app))
})
afterAll(async () => {
  await operator?.context.close()
  await app?.close()
})

async function issue({ client }: NewAgent, backend: string): Promise<string> {
  const reply = await client.post('/api/v1/credentials', { backend, scopes: [`${backend}:read`] })
  expect([reply.status, reply.text]).toEqual([201, reply.text])
  return reply.body.id
}

const list = (page: Page) => page.getByRole('grid', { name: 'Activity' })
const rowsOf = (page: Page) =>
  list(page)
    .getByRole('row')
    .filter({ hasNot: page.getByRole('columnheader') })

test.each(handsOf(MOUSE))(
  'filters are in the address, and are there after a reload, by $name',
  async (hands) => {
    const { page, complaints } = operator
    await page.goto(`${origin}/console`)
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    if (hands === MOUSE) await page.getByRole('link', { name: 'Activity', exact: true }).click()
    else for (const key of ['g', 't']) await page.keyboard.press(key)
    await list(page).waitFor()
    await hands.write(page.getByRole('searchbox', { name: 'Agent' }), 'reader')
    await page.keyboard.press('Enter')
    await page.waitForURL(/agent=reader/)
    await hands.choose(page.getByLabel('What happened'), 'Credential issued')
    await page.waitForURL(/action=credential\.issued/)
    await eventually(async () => expect(await rowsOf(page).count()).toBe(2))
    await page.reload()
    await eventually(async () => expect(await rowsOf(page).count()).toBe(2))
    expect(await page.getByRole('searchbox', { name: 'Agent' }).inputValue()).toBe('reader')
    expect(await page.getByLabel('What happened').inputValue()).toBe('credential.issued')
    await hands.write(page.getByRole('searchbox', { name: 'Backend' }), 'stock')
    await page.keyboard.press('Enter')
    await eventually(async () => expect(await rowsOf(page).count()).toBe(1))
    expect(complaints).toEqual([])
  },
)

test.each(handsOf(KEYBOARD))("a credential's life is told as a story, by $name", async (hands) => {
  const { page, complaints } = operator
  if (hands === MOUSE) {
    await page.goto(`${origin}/console/credentials?agent=reader&status=revoked`)
    await page
      .getByRole('row', { name: /orders/ })
      .first()
      .click()
  } else {
    await page.goto(`${origin}/console`)
    await page.getByRole('navigation', { name: 'Rooms' }).waitFor()
    await byPalette(page, credential)
  }
  await hands.press(page.getByRole('link', { name: 'Its story' }))
  await page.getByText(/^The life of/).waitFor()
  const chapters = page.getByRole('main').getByRole('listitem')
  await chapters.filter({ hasText: 'Issued to reader at orders' }).waitFor()
  const told = await chapters.allInnerTexts()
  const order = ['Issued to reader at orders', 'Revoked'].map((word) =>
    told.findIndex((text) => text.toLowerCase().includes(word.toLowerCase())),
  )
  expect(order, told.join('\n')).toEqual(order.toSorted((one, next) => one - next))
  expect(order).not.toContain(-1)
  expect(complaints).toEqual([])
})

test.each([
  ['jsonl', MOUSE],
  ['csv', KEYBOARD],
] as const)('a download as %s has the same entries as the interface', async (format, hands) => {
  const { page, complaints } = operator
  const query = 'agent=reader'
  await page.goto(`${origin}/console/activity?${query}`)
  await rowsOf(page).first().waitFor()
  await hands.press(button(page, 'Download'))
  const dialog = page.getByRole('dialog')
  await hands.choose(
    dialog.getByLabel('Format'),
    format === 'csv' ? 'CSV: for a spreadsheet' : 'JSONL: one JSON object a line',
  )
  const downloading = page.waitForEvent('download')
  await hands.press(dialog.getByRole('button', { name: 'Download' }))
  const download = await downloading
  expect(download.suggestedFilename()).toMatch(new RegExp(`^mayfly-audit-[\\d-]+\\.${format}$`))
  await dialog.waitFor({ state: 'detached' })
  const text = await readFile(await download.path(), 'utf8')
  const { body } = await app.local.get(`/v1/admin/audit?${query}&limit=1000`)
  const lines = text.trimEnd().split(/\r?\n/)
  if (format === 'jsonl') expect(lines.map((line) => JSON.parse(line))).toEqual(body)
  else
    expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(body.map(({ id }: { id: string }) => id))
  expect(complaints).toEqual([])
})

/** Adds entries as if they had just happened, the newest of an agent with this name. */
async function addEntries(count: number, newest: string): Promise<void> {
  const { ids, store } = app.core
  const [like] = await store.audit.query({ action: 'credential.issued' }, 1)
  if (like === undefined) throw new Error('no entry')
  const entries = Array.from({ length: count }, (_, n) => ({
    ...like,
    id: ids.body(),
    at: store.now(),
    agentName: n === count - 1 ? newest : like.agentName,
  }))
  await store.commit(
    entries.map((entry) => store.audit.record(entry)),
    { bulk: true },
  )
}

test(`follows ${EVENTS} events${LONG ? ', and the memory of the page stays as it was' : ''}`, async () => {
  const { page, cdp, complaints } = operator
  await page.goto(`${origin}/console/activity`)
  await rowsOf(page).first().waitFor()
  await untilLive(page)
  await page.keyboard.press('f')
  await button(page, /^Following/).waitFor()
  const used = async () => {
    await cdp.send('HeapProfiler.enable')
    await cdp.send('HeapProfiler.collectGarbage')
    return (await cdp.send('Runtime.getHeapUsage')).usedSize
  }
  const sizes: number[] = []
  for (let done = 0; done < EVENTS; done += AT_ONCE) {
    const mark = `after-${done}`
    await addEntries(AT_ONCE, mark)
    await page.getByRole('row', { name: new RegExp(mark) }).waitFor()
    if (LONG) sizes.push(await used())
  }
  // The first thousand entries are kept; what comes after them replaces them.
  const settled = Math.max(...sizes.slice(0, 1_000 / AT_ONCE))
  if (LONG) expect(Math.max(...sizes) - settled, sizes.join(' ')).toBeLessThan(GROWTH)
  expect(complaints).toEqual([])
}, 300_000)

/** The streams that the server has open now. */
function countStreams(): { readonly open: () => number } {
  const { feed } = app.core
  const lines = new Set<object>()
  const join = feed.join.bind(feed)
  feed.join = (...given) => {
    const line = join(...given)
    lines.add(line)
    return {
      ...line,
      leave: () => {
        lines.delete(line)
        line.leave()
      },
    }
  }
  return { open: () => lines.size }
}

test('two tabs share one stream, and the second takes it over when the first is closed', async () => {
  const { page, context, complaints } = operator
  await page.goto('about:blank')
  const streams = countStreams()
  await page.goto(`${origin}/console/activity?agent=reader`)
  await untilLive(page)
  const second = await context.newPage()
  await second.goto(`${origin}/console/credentials?agent=reader`)
  await untilLive(second)
  const rows = second.getByRole('row', { name: /reader/ })
  await rows.first().waitFor()
  const before = await rows.count()
  expect(streams.open()).toBe(1)
  await issue(agent, 'orders')
  await eventually(async () => expect(await rows.count()).toBe(before + 1))
  await page.close()
  await eventually(async () => expect(streams.open()).toBe(1))
  await issue(agent, 'orders')
  await eventually(async () => expect(await rows.count()).toBe(before + 2))
  expect(streams.open()).toBe(1)
  expect(complaints).toEqual([])
})
