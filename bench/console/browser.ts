/** The console in a real browser, for what it costs. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Browser, type BrowserContext, type CDPSession, chromium, type Page } from 'playwright-core'
import { onExit } from '../processes.ts'
import type { Room } from './rooms.ts'

/** What a context of the browser begins with: a session, or nothing. */
export type Login = Awaited<ReturnType<BrowserContext['storageState']>> | undefined

const LONGEST_MS = 60_000
const SIZE = { width: 1_280, height: 800 }

export async function startBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--enable-precise-memory-info',
    ],
  })
  onExit(() => browser.close())
  return browser
}

/** Logs in by the link of an invitation. */
export async function logIn(browser: Browser, url: string): Promise<Login> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(url)
  await page.getByRole('navigation', { name: 'Rooms' }).waitFor({ state: 'attached' })
  const login = await context.storageState()
  await context.close()
  return login
}

export interface Opened {
  readonly context: BrowserContext
  readonly page: Page
  readonly cdp: CDPSession
  /** From the beginning of the navigation to the frame in which the room can be used, in ms. */
  readonly usableMs: number
  /** Requests that failed or were refused. */
  readonly failed: string[]
  /** How many requests there were. */
  requests(): number
}

/** A new context, without a cache, which goes to a room. */
export async function open(browser: Browser, login: Login, origin: string, room: Room): Promise<Opened> {
  const context = await browser.newContext({
    viewport: SIZE,
    ...(login === undefined ? {} : { storageState: login }),
  })
  const page = await context.newPage()
  const failed: string[] = []
  let requests = 0
  page.on('request', () => {
    requests += 1
  })
  page.on('response', (reply) => {
    if (reply.status() >= 400) failed.push(`${reply.status()} ${reply.url()}`)
  })
  page.on('requestfailed', (asked) => {
    const { errorText = '' } = asked.failure() ?? {}
    // The page itself gave it up: it asks again, or shows something else.
    if (errorText !== 'net::ERR_ABORTED') failed.push(`${errorText} ${asked.url()}`)
  })
  const cdp = await context.newCDPSession(page)
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true })
  await page.addInitScript(watching(room))
  await page.goto(origin + room.path, { waitUntil: 'commit' })
  const usableMs = await Promise.race([
    evaluate<number>(cdp, 'globalThis.benchUsable'),
    wait(LONGEST_MS, undefined, { ref: false }),
  ])
  if (usableMs === undefined)
    throw new Error(`${room.path} cannot be used: ${await evaluate(cdp, 'document.body.innerText')}`)
  if (failed.length > 0) throw new Error(`${room.path}: ${failed.join(', ')}`)
  return { context, page, cdp, usableMs, failed, requests: () => requests }
}

/** Looks before each frame: what is there then is painted in it. Only the page itself counts, not its frames. */
function watching({ heading, content }: Room): string {
  return `if (window === top) globalThis.benchUsable = new Promise((resolve) => {
    const isUsable = () =>
      document.querySelector('main h1')?.textContent === ${JSON.stringify(heading)} &&
      document.querySelector('.skeleton') === null &&
      document.querySelector(${JSON.stringify(content)}) !== null
    const look = () => (isUsable() ? resolve(performance.now()) : requestAnimationFrame(look))
    requestAnimationFrame(look)
  })`
}

/** The rules of the page for scripts do not hold for the protocol of the browser. */
export async function evaluate<T>(cdp: CDPSession, expression: string): Promise<T> {
  const { result, exceptionDetails } = await cdp.send('Runtime.evaluate', {
    expression,
    awaitPromise: true,
    returnByValue: true,
  })
  if (exceptionDetails !== undefined)
    throw new Error(`in the page: ${exceptionDetails.exception?.description}`)
  return result.value as T
}

/** What lives on the heap of JavaScript, in MB, and the nodes of the document. */
export async function heapOf(cdp: CDPSession): Promise<{ mb: number; nodes: number }> {
  await cdp.send('HeapProfiler.enable')
  // What the first collection frees of the document, the second one finds.
  for (let n = 0; n < 2; n += 1) await cdp.send('HeapProfiler.collectGarbage')
  await cdp.send('HeapProfiler.disable')
  const { usedSize } = await cdp.send('Runtime.getHeapUsage')
  const { nodes } = await cdp.send('Memory.getDOMCounters')
  return { mb: usedSize / 1_048_576, nodes }
}

/** The times between frames, in ms, while a list is scrolled by so many rows, and while it rests for as long. */
export async function scroll(
  cdp: CDPSession,
  rows: number,
): Promise<{ moving: number[]; resting: number[] }> {
  const moving = await evaluate<number[]>(cdp, scrolling(rows))
  const resting = await evaluate<number[]>(
    cdp,
    `new Promise((resolve) => {
      const gaps = []
      let last
      const frame = (now) => {
        if (last !== undefined) gaps.push(now - last)
        last = now
        return gaps.length < ${moving.length} ? requestAnimationFrame(frame) : resolve(gaps)
      }
      requestAnimationFrame(frame)
    })`,
  )
  return { moving, resting }
}

/** Three rows with each frame, as a hand does that scrolls fast; at the end of what is read it waits for more. */
const scrolling = (rows: number) => `new Promise((resolve) => {
  const list = document.querySelector('[role="grid"]')
  const height = list.querySelector('[id^="row-"]').offsetHeight
  const gaps = []
  let last
  const frame = (now) => {
    if (last !== undefined) gaps.push(now - last)
    last = now
    if (list.scrollTop >= ${rows} * height) return resolve(gaps)
    list.scrollBy(0, 3 * height)
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
})`
