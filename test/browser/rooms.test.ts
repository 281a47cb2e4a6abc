import AxeBuilder from '@axe-core/playwright'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { buildWeb } from '../support/built-web.ts'
import { enterByLink, loginLink, openWindow, originOf, type Window } from '../support/console.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { LONG } from '../support/long.ts'

/** Every room, full of what strangers may write: it can be used by everybody, and shows text as text. */
let app: TestApp
let origin: string
let operator: Window
/** The ids that the addresses of rooms name. */
const ids: Record<string, string> = {}

const ROOMS = [
  '',
  '/pending',
  '/pending/:asked',
  '/pending/:enrolled',
  '/credentials',
  '/credentials/:issued',
  '/runs',
  '/runs/:run',
  '/agents',
  '/agents?new=1',
  '/agents/writer',
  '/backends',
  '/backends?new=postgres',
  '/backends/orders',
  '/activity',
  '/activity?credential=:issued',
  '/activity?run=:run',
  '/policies',
  '/kinds',
  '/kinds/postgres',
  '/keys',
  '/operators',
  '/operators/alice@example.com',
  '/settings',
  '/me',
  '/allow',
]

const SCREEN = { width: 1280, height: 800 }
const PHONE = { width: 360, height: 760 }
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
  operator = await openWindow({ userAgent: `Mozilla/5.0 ${MARKUP}`, reducedMotion: 'reduce' })
  await enterByLink(operator, await loginLink(app))
  await fill()
}, 120_000)
afterAll(async () => {
  await operator?.context.close()
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
  const run = await client.post('/v1/runs', {
    purpose: `${MARKUP}\n${BIDI} ${'x'.repeat(300)}`,
    heartbeat: '1h',
  })
  await client.post('/api/v1/credentials', { backend: 'orders', scopes: ['read'], run: run.body.id })
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
  Object.assign(ids, {
    asked: asked.body.id,
    enrolled: enrolled.body.id,
    issued: issued.body.id,
    run: run.body.id,
  })
}

/** Opens a room as a link in the page does, or as a reload of its address, which takes longer. */
async function enter(room: string): Promise<void> {
  const { page } = operator
  const path = `/console${room.replace(/:(\w+)/, (_, name) => ids[name] ?? '')}`
  await page.setViewportSize(SCREEN)
  if (LONG) await page.goto(origin + path)
  else await page.evaluate(`history.pushState(null, '', '${path}')`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await operator.settled()
}

interface Options {
  readonly colorScheme: 'light' | 'dark'
  /** The rules that see colours; what the others find does not depend on the scheme. */
  readonly isOfColours?: boolean
}

/** What axe finds on the page as it is. */
async function faults({ colorScheme, isOfColours = false }: Options): Promise<string[]> {
  const { page } = operator
  await page.emulateMedia({ colorScheme })
  // No room has a frame, for which axe would open another page, or a medium, which it would load.
  const axe = new AxeBuilder({ page })
    .setLegacyMode()
    .options({ resultTypes: ['violations'], preload: false })
  if (isOfColours) axe.withRules(['color-contrast', 'link-in-text-block'])
  const { violations } = await axe.analyze()
  return violations.map(
    ({ id, nodes }) =>
      `${colorScheme}: ${id}: ${nodes
        .map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`)
        .join(' | ')
        .slice(0, 600)}`,
  )
}

const faultsOfBoth = async (): Promise<string[]> => [
  ...(await faults({ colorScheme: 'light' })),
  ...(await faults({ colorScheme: 'dark', isOfColours: !LONG })),
]

let seen = ''
async function expectTextOfStrangers(): Promise<void> {
  const { page } = operator
  const text = await page.evaluate<string>('document.body.innerText')
  expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  expect(await page.evaluate('window.pwned')).toBeUndefined()
  expect(await page.evaluate('document.querySelectorAll("main img, main script, main iframe").length')).toBe(
    0,
  )
  seen += text
}

const titles = new Set<string>()

/** Runs in the page: what scrolls to the side, but for lines of code. */
const TOO_WIDE = `[...document.querySelectorAll('*')]
  .filter((one) => one === document.scrollingElement || /auto|scroll/.test(getComputedStyle(one).overflowX))
  .filter((one) => one.tagName !== 'PRE' && one.scrollWidth > one.clientWidth)
  .map((one) => one.outerHTML.slice(0, 200))`

test.each(ROOMS)('/console%s is for everybody, fits a phone, and shows text as text', async (room) => {
  const { page, complaints } = operator
  await enter(room)
  await expectTextOfStrangers()
  expect(await faultsOfBoth()).toEqual([])
  titles.add(await page.title())
  await page.setViewportSize(PHONE)
  await operator.settled()
  expect(await page.evaluate(TOO_WIDE)).toEqual([])
  if (LONG) expect(await faultsOfBoth()).toEqual([])
  expect(complaints).toEqual([])
})

test('what strangers wrote was there to be seen, in all rooms', () => {
  expect([...titles]).toHaveLength(14)
  expect(seen).toContain(MARKUP)
  expect(seen).toContain('⟨U+202E⟩')
})

test('a person with few scopes sees what they may, and why not the rest', async () => {
  const other = await openWindow()
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
})
