import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { startApp, type TestApp } from '../../test/support/app.ts'
import { buildWeb } from '../../test/support/built-web.ts'
import {
  chromiumPath,
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  startBrowser,
  type Window,
} from '../../test/support/console.ts'
import { NOW } from './seeded.ts'
import { openShop, type Shop } from './shop.ts'
import { FIRST_RUN, SHOTS, type Shot } from './shots.ts'

/**
 * Makes the screenshots of the console in docs/assets/console: real servers with made-up data, in real Chromium. Their clocks
 * stand still, so that a file changes only with what it shows. `node scripts/docs/screenshots.ts NAME…` makes some of them.
 */
const FOLDER = join(import.meta.dirname, '../../docs/assets/console')
const [, , ...wanted] = process.argv

async function makeScreenshots(): Promise<void> {
  await buildWeb()
  await mkdir(FOLDER, { recursive: true })
  const browser = await startBrowser()
  try {
    if (isAny(FIRST_RUN)) await onEmptyServer(browser)
    if (isAny(SHOTS)) await inShop(browser)
  } finally {
    await browser.close()
  }
}

const isWanted = ({ name }: Shot): boolean => wanted.length === 0 || wanted.includes(name)
const isAny = (shots: readonly Shot[]): boolean => shots.some(isWanted)

async function onEmptyServer(browser: Browser): Promise<void> {
  const app = await startApp({ ownIssuer: true })
  try {
    const window = await openWindow(browser, { reducedMotion: 'reduce' })
    await enterByLink(window, await loginLink(app))
    await shootAll(FIRST_RUN, window, app)
  } finally {
    await app.close()
  }
}

async function inShop(browser: Browser): Promise<void> {
  const shop = await openShop()
  try {
    const window = await openWindow(browser, { reducedMotion: 'reduce' })
    await window.context.clock.setFixedTime(NOW)
    await enterByLink(window, await shop.link())
    await shootAll(SHOTS, window, shop.app, shop)
  } finally {
    await shop.close()
  }
}

async function shootAll(shots: readonly Shot[], window: Window, app: TestApp, shop?: Shop): Promise<void> {
  const { page } = window
  for (const shot of shots.filter(isWanted)) {
    const { name, size = [1280, 800], scheme = 'light', path, act } = shot
    await page.setViewportSize({ width: size[0], height: size[1] })
    await page.emulateMedia({ colorScheme: scheme })
    const address = typeof path === 'string' || shop === undefined ? path : path(shop)
    await page.goto(`${originOf(app)}/console${address}`)
    await act?.(page)
    await settle(window)
    await writeFile(join(FOLDER, `${name}.webp`), await imageOf(window))
  }
  if (window.complaints.length > 0) throw new Error(window.complaints.join('\n'))
}

/** Nothing is loading any more, and nothing is drawn for another frame. */
async function settle({ page }: Window): Promise<void> {
  await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => undefined)
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  await page.mouse.move(0, 0)
  await page.evaluate(
    'document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))',
  )
}

/** WebP, which is a third of the PNG. */
async function imageOf({ cdp }: Window): Promise<Buffer> {
  const { data } = await cdp.send('Page.captureScreenshot', { format: 'webp', quality: 82 })
  return Buffer.from(data, 'base64')
}

if (existsSync(chromiumPath)) await makeScreenshots()
else
  console.error(
    `The screenshots stay as they are: there is no Chromium at ${chromiumPath} (the variable CHROMIUM names another).`,
  )
