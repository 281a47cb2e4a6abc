import AxeBuilder from '@axe-core/playwright'
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
import { newEnrollee } from '../support/enrollee.ts'
import { LONG } from '../support/long.ts'

/** Every room, full of what strangers may write: it can be used by everybody, and shows text as text. */
let app: TestApp
let browser: Browser
let origin: string
let operator: Window
const paths: string[] = []

const MARKUP = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
const BIDI = 'ends \u202Eevil\u2066 \u200b\ufeff here'

beforeAll(async () => {
  await buildWeb()
  app = await startApp({
    ownIssuer: true,
    jobs: true,
    yaml: 'policies:\n  - name: ci\n    pattern: ci-*\n    scopes: [orders]\n    auto_approve: false\n',
  })
  origin = originOf(app)
  browser = await startBrowser()
  operator = await openWindow(browser, { userAgent: `Mozilla/5.0 ${MARKUP}` })
  await enterByLink(operator, await loginLink(app))
  await fill()
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await app?.close()
})

async function fill(): Promise<void> {
  await app.newBackend({ name: 'orders', description: `${MARKUP} ${BIDI}` })
  const agent = await app.local.post('/v1/admin/agents', {
    name: 'writer',
    scopes: ['orders'],
    description: `${MARKUP}${BIDI}`,
    owner: `${BIDI}${MARKUP}`,
  })
  const client = app.as(agent.body.token)
  const issued = await client.post('/api/v1/credentials', {
    backend: 'orders',
    scopes: ['read'],
    metadata: { why: MARKUP, note: BIDI },
  })
  const asked = await client.post('/v1/request', { scopes: ['orders:write'], reason: `${MARKUP}\n${BIDI}` })
  const key = newEnrollee().publicKey
  const enrolled = await app.as(undefined).post('/v1/enroll', {
    name: 'ci-build',
    public_key: key,
    scopes: ['orders:read', 'nowhere:x'],
    metadata: { host: MARKUP, branch: BIDI, long: 'x'.repeat(1_000) },
  })
  await app.local.post('/v1/admin/operators', {
    email: 'mallory@example.com',
    name: `Mallory ${BIDI}`,
    scopes: ['admin:audit:read'],
  })
  paths.push(
    '/console',
    '/console/pending',
    `/console/pending/${asked.body.id}`,
    `/console/pending/${enrolled.body.id}`,
    '/console/credentials',
    `/console/credentials/${issued.body.id}`,
    '/console/agents',
    '/console/agents?new=1',
    '/console/agents/writer',
    '/console/backends',
    '/console/backends?new=postgres',
    '/console/backends/orders',
    '/console/activity',
    `/console/activity?credential=${issued.body.id}`,
    '/console/policies',
    '/console/kinds',
    '/console/kinds/postgres',
    '/console/keys',
    '/console/operators',
    '/console/operators/alice@example.com',
    '/console/settings',
    '/console/me',
    '/console/allow',
  )
}

async function visit(path: string): Promise<void> {
  const { page } = operator
  await page.goto(origin + path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await operator.settled()
}

test.each(['light', 'dark'] as const)(
  'no room has a fault that axe finds, in %s',
  async (colorScheme) => {
    const { page } = operator
    await page.emulateMedia({ colorScheme })
    const faults: string[] = []
    // The short form looks at each in one of both.
    const turn = colorScheme === 'light' ? 0 : 1
    const some = LONG ? paths : paths.filter((_, n) => n % 2 === turn)
    for (const path of some) {
      await visit(path)
      const { violations } = await new AxeBuilder({ page }).analyze()
      for (const { id, nodes } of violations)
        faults.push(
          `${path}: ${id}: ${nodes
            .map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`)
            .join(' | ')
            .slice(0, 600)}`,
        )
    }
    expect(faults).toEqual([])
    expect(operator.complaints).toEqual([])
  },
  300_000,
)

test('text of strangers is text: nothing of it runs, turns the line around, or hides', async () => {
  const { page, complaints } = operator
  let seen = ''
  // The others show nothing that a stranger wrote.
  const some = LONG ? paths : paths.filter((path) => !/new=|policies|kinds|keys|settings/.test(path))
  for (const path of some) {
    await visit(path)
    const text = await page.evaluate<string>('document.body.innerText')
    expect(text.replaceAll(/[\n\t]/g, ''), path).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(await page.evaluate('window.pwned'), path).toBeUndefined()
    expect(
      await page.evaluate('document.querySelectorAll("main img, main script, main iframe").length'),
      path,
    ).toBe(0)
    seen += text
  }
  // It was there to be seen.
  expect(seen).toContain(MARKUP)
  expect(seen).toContain('⟨U+202E⟩')
  expect(complaints).toEqual([])
}, 300_000)

test('a person with few scopes sees what they may, and why not the rest', async () => {
  const other = await openWindow(browser)
  const invited = await app.local.post('/v1/admin/operators', {
    email: 'reader@example.com',
    scopes: ['admin:tokens:read'],
  })
  await enterByLink(other, invited.body.invitation.url)
  await other.page.goto(`${origin}/console/agents`)
  await other.page.getByText('Agents: not with your scopes').waitFor()
  await other.page.goto(`${origin}/console/credentials`)
  await other.page
    .getByRole('row', { name: /writer/ })
    .first()
    .click()
  await other.page.getByRole('button', { name: /^End it/ }).waitFor()
  expect(await other.page.getByRole('button', { name: /^End it/ }).getAttribute('aria-disabled')).toBe('true')
  expect(other.complaints).toEqual([])
  await other.context.close()
}, 60_000)
