import {
  type Browser,
  type BrowserContext,
  type CDPSession,
  chromium,
  type Page,
  type Request,
} from 'playwright-core'
import type { TestApp } from './app.ts'

/** The console in a real browser, for tests of `test/browser`. */
export const chromiumPath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

/**
 * What no test needs. Chromium takes the last list of its command line, so this has that of Playwright, too; the popups of the address
 * bar, which nobody sees, would be two pages more for each window.
 */
const WITHOUT = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AimEnabled',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
]

let browser: Promise<Browser> | undefined

/** One for all files of a worker, with which it ends: each window has its own cookies, storage and cache. */
export function startBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      `--disable-features=${WITHOUT.join()}`,
    ],
  })
  return browser
}

/** The address at which passkeys work: those of an IP address do not. */
export const originOf = ({ url }: TestApp): string => url.replace('127.0.0.1', 'localhost')

export interface Window {
  readonly context: BrowserContext
  readonly page: Page
  readonly cdp: CDPSession
  readonly authenticatorId: string
  /** What the browser complained of on any page: errors, and whatever the CSP refused. */
  readonly complaints: string[]
  /** Resolves once the page has all that it has asked for, and shows it. */
  settled(): Promise<void>
}

/** Streams stay open as long as the page does. */
const isStream = (request: Request): boolean => request.url().endsWith('/v1/admin/events')

function settling(page: Page): () => Promise<void> {
  const asked = new Set<Request>()
  const answered = (request: Request) => asked.delete(request)
  page.on('request', (request) => isStream(request) || asked.add(request))
  page.on('requestfinished', answered)
  page.on('requestfailed', answered)
  const drawn = () =>
    page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  return async () => {
    do {
      // What is loading is grey, and says nothing yet.
      await page.locator('.skeleton').first().waitFor({ state: 'detached' })
      await drawn()
    } while (asked.size > 0 || (await page.locator('.skeleton').count()) > 0)
  }
}

const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('CSP', violatedDirective, blockedURI))`

/** A browser of its own for one person, with a virtual authenticator that always agrees. */
export async function openWindow(options: Parameters<Browser['newContext']>[0] = {}): Promise<Window> {
  const context = await (await startBrowser()).newContext(options)
  const complaints: string[] = []
  context.on('console', (message) => {
    // A refused request is a line of the browser's own.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text())
  })
  context.on('weberror', (error) => complaints.push(error.error().message))
  await context.addInitScript(REPORT_VIOLATIONS)
  const page = await context.newPage()
  const settled = settling(page)
  const cdp = await context.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return { context, page, cdp, authenticatorId, complaints, settled }
}

export const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true })
/** Resolves once the page is told of what happens. */
export const untilLive = (page: Page): Promise<void> =>
  page
    .getByRole('status')
    .filter({ hasText: /^\W*Live$/ })
    .waitFor()
/** The frame of the console: a person is logged in. */
export const frameOf = (page: Page) => page.getByRole('navigation', { name: 'Rooms' })

export async function loginLink(app: TestApp): Promise<string> {
  return (await app.local.post('/v1/admin/console/links')).body.url
}

/** Logs in by a link; the first of a server asks who it is. */
export async function enterByLink({ page }: Pick<Window, 'page'>, url: string): Promise<void> {
  await page.goto(url)
  const home = frameOf(page)
  const naming = page.getByRole('heading', { name: 'You are the first operator' })
  await home.or(naming).first().waitFor({ state: 'attached' })
  if (await naming.isVisible()) {
    await page.getByLabel('Name', { exact: true }).fill('Alice')
    await page.getByLabel('E-mail address').fill('alice@example.com')
    await button(page, 'Become the first operator').click()
    await home.waitFor({ state: 'attached' })
  }
}

/** Registers a passkey on the page of the account, and stays there. */
export async function registerPasskey({ page }: Pick<Window, 'page'>, name: string): Promise<void> {
  const origin = new URL(page.url()).origin
  if (new URL(page.url()).pathname !== '/console/me') await page.goto(`${origin}/console/me`)
  await page.getByLabel('Name of a new passkey').fill(name)
  await button(page, 'Register a passkey').click()
  await page
    .getByRole('listitem')
    .filter({ hasText: `${name}registered` })
    .waitFor()
}
