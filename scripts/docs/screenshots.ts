import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { startApp, type TestApp } from '../../test/support/app.ts'
import { buildWeb } from '../../test/support/built-web.ts'
import {
  chromiumPath,
  enterByLink,
  loginLink,
  openWindow,
  originOf,
  registerPasskey,
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
    if (isAny(FIRST_RUN)) await onEmptyServer()
    if (isAny(SHOTS)) await inShop()
  } finally {
    await browser.close()
  }
}

const isWanted = ({ name }: Shot): boolean => wanted.length === 0 || wanted.includes(name)
const isAny = (shots: readonly Shot[]): boolean => shots.some(isWanted)

/** The name of this machine is shown. */
os.hostname = () => 'mayfly-1'
syncBuiltinESMExports()

async function onEmptyServer(): Promise<void> {
  const app = await startApp({ ownIssuer: true })
  try {
    const window = await openWindow(LIKE_A_PERSON)
    await enterByLink(window, await loginLink(app))
    await shootAll(FIRST_RUN, window, app)
  } finally {
    await app.close()
  }
}

async function inShop(): Promise<void> {
  const shop = await openShop()
  try {
    const window = await openWindow(LIKE_A_PERSON)
    await window.context.clock.setFixedTime(NOW)
    await enterByLink(window, await shop.link())
    await registerPasskey(window, 'Laptop of Alice')
    await shootAll(SHOTS, window, shop.app, shop)
  } finally {
    await shop.close()
  }
}

/** Its name is shown among the sessions. */
const LIKE_A_PERSON = {
  reducedMotion: 'reduce',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
} as const

async function shootAll(shots: readonly Shot[], window: Window, app: TestApp, shop?: Shop): Promise<void> {
  const { page } = window
  // A machine that is busy takes its time; what does not come at all ends it.
  page.setDefaultTimeout(300_000)
  const before = await window.context.newPage()
  for (const shot of shots.filter(isWanted)) {
    const { name, size = [1280, 800], scheme = 'light', path, act, tolerance = 0.0005 } = shot
    await page.setViewportSize({ width: size[0], height: size[1] })
    await page.emulateMedia({ colorScheme: scheme })
    const address = typeof path === 'string' || shop === undefined ? path : path(shop)
    await page.goto(`${originOf(app)}/console${address}`)
    await act?.(page)
    await settle(window)
    await keep(join(FOLDER, `${name}.webp`), await imageOf(window), before, tolerance)
  }
  if (window.complaints.length > 0) throw new Error(window.complaints.join('\n'))
}

/** Leaves a file that shows the same. */
async function keep(path: string, image: Buffer, page: Page, tolerance: number): Promise<void> {
  const old = await readFile(path).catch(() => undefined)
  if (old !== undefined && (await differenceOf(page, old, image)) <= tolerance) return
  await writeFile(path, image)
  console.error(`made ${path}`)
}

/** The share of pixels that are clearly another colour; 1 for another size. */
function differenceOf(page: Page, one: Buffer, other: Buffer): Promise<number> {
  const urls = [one, other].map((image) => `data:image/webp;base64,${image.toString('base64')}`)
  return page.evaluate(`(async () => {
    const [one, other] = await Promise.all(${JSON.stringify(urls)}.map(async (url) => {
      const image = await createImageBitmap(await (await fetch(url)).blob())
      const canvas = new OffscreenCanvas(image.width, image.height)
      const context = canvas.getContext('2d')
      context.drawImage(image, 0, 0)
      return context.getImageData(0, 0, image.width, image.height)
    }))
    if (one.width !== other.width || one.height !== other.height) return 1
    let count = 0
    for (let at = 0; at < one.data.length; at += 4)
      if ([0, 1, 2].some((part) => Math.abs(one.data[at + part] - other.data[at + part]) > 64)) count += 1
    return (count * 4) / one.data.length
  })()`)
}

/** Nothing is loading any more, and nothing is drawn for another frame. */
async function settle({ page, settled }: Window): Promise<void> {
  await page.mouse.move(0, 0)
  await page.evaluate('document.fonts.ready.then(() => undefined)')
  await settled()
}

/** WebP, which is a third of the PNG. */
async function imageOf({ cdp }: Window): Promise<Buffer> {
  const { data } = await cdp.send('Page.captureScreenshot', { format: 'webp', quality: 88 })
  return Buffer.from(data, 'base64')
}

if (existsSync(chromiumPath)) await makeScreenshots()
else
  console.error(
    `The screenshots stay as they are: there is no Chromium at ${chromiumPath} (the variable CHROMIUM names another).`,
  )
