import { setTimeout as wait } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { alternatePairs, figureOf } from '../against.ts'
import {
  evaluate,
  heapOf,
  type Login,
  logIn,
  type Opened,
  open,
  scroll,
  startBrowser,
} from '../console/browser.ts'
import { ROOMS, type Room, STATIC } from '../console/rooms.ts'
import { askForMore, consoleStore, startConsole } from '../console/store.ts'
import { median } from '../median.ts'
import { usageOf } from '../processes.ts'
import { atMost, type Row } from '../report.ts'
import { fetchJson } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { BACKEND, type OurServer, SCOPES } from '../server.ts'
import type { LargeStore } from '../stores.ts'

const GOAL_MS = 1_000
/** Of the least that a read of a server takes which has just started. */
const READ_GOAL_MS = 100
/** Between two loads: a person is not faster, and the server bounds how many files it hands out in a minute. */
const PAUSE_MS = 300
/** What an open page may keep of so many events. */
const HEAP_GOAL = 1.1

/** The console in Chromium, beside a store of 1,000,000 credentials and 10,000,000 entries. */
export const consoleRooms: Scenario = {
  name: 'console',
  title: 'Console in Chromium, SQLite',
  run: async (bench) => measureConsole(bench, await consoleStore(bench)),
}

interface Visit {
  readonly bench: Bench
  readonly store: LargeStore
  readonly server: OurServer
  readonly browser: Browser
  readonly login: Login
  readonly origin: string
}

export async function measureConsole(bench: Bench, store: LargeStore): Promise<Row[]> {
  const rows = await readRows(bench, store)
  const server = await startConsole(bench, store)
  await askForMore(store, server)
  const browser = await startBrowser()
  const person = { email: `bench-${Date.now()}@example.com`, scopes: ['admin:*'], backend_scopes: ['*'] }
  const { invitation } = await server.admin<{ invitation: { url: string } }>(
    'POST',
    '/v1/admin/operators',
    person,
  )
  const { origin } = new URL(invitation.url)
  const login = await logIn(browser, invitation.url)
  const visit = { bench, store, server, browser, login, origin }
  for (const room of ROOMS) rows.push(await roomRow(visit, room))
  rows.push(...(await scrollRows(visit)), ...(await heapRows(visit)))
  await browser.close()
  await server.stop()
  return rows
}

/** What the overview and the backends read, of a server that has just started and of one that has not. */
async function readRows(bench: Bench, store: LargeStore): Promise<Row[]> {
  const times = new Map<string, { ms: number; cpuMs: number }[]>()
  for (let n = 0; n < (bench.quick ? 1 : 3); n += 1) {
    const server = await startConsole(bench, store)
    for (const path of ['/v1/admin/overview', '/v1/admin/backends?limit=1000'])
      for (const which of ['first', 'second']) {
        const cpu = () => (usageOf(server.pid)?.cpuSeconds ?? Number.NaN) * 1_000
        const [began, before] = [performance.now(), cpu()]
        await server.admin('GET', path)
        const took = { ms: performance.now() - began, cpuMs: cpu() - before }
        const label = `GET ${path}, ${which} after a start`
        times.set(label, [...(times.get(label) ?? []), took])
      }
    await server.stop()
  }
  return [...times].map(([scenario, all]) => {
    const shown = all.map(({ ms, cpuMs }) => `${ms.toFixed(1)} (CPU ${cpuMs.toFixed(0)})`).join(', ')
    bench.say(`${scenario}: ${shown} ms`)
    const p50 = median(all.map(({ ms }) => ms))
    return {
      scenario,
      clients: 1,
      figures: { p50 },
      comparedWith: `${READ_GOAL_MS} ms`,
      ratio: p50 / READ_GOAL_MS,
      goal: atMost(p50 / READ_GOAL_MS, 1),
      detail: { all },
    }
  })
}

/** Cold loads of a room, and of a page that reads nothing, in turns. */
async function roomRow(visit: Visit, room: Room): Promise<Row> {
  const { bench, login } = visit
  const load = async (which: Room, as: Login) => {
    const opened = await open(visit.browser, as, visit.origin, which)
    await opened.context.close()
    await wait(PAUSE_MS)
    return opened.usableMs
  }
  const pairs = await alternatePairs(bench.pace.pairs, {
    ours: () => load(room, login),
    reference: () => load(STATIC, undefined),
  })
  const measured = figureOf(pairs, (ms) => ms)
  const p50 = median(measured.map(({ ours }) => ours))
  const ratio = median(measured.map(({ ours, reference }) => ours / reference))
  const reference = median(measured.map((one) => one.reference))
  bench.say(
    `${room.heading}: ${p50.toFixed(0)} ms, without reads ${reference.toFixed(0)} ms, ratio ${ratio.toFixed(2)}`,
  )
  return {
    scenario: `Console, cold load of ${room.path}`,
    clients: 1,
    figures: { p50 },
    comparedWith: `the page to log in: ${reference.toFixed(0)} ms`,
    ratio,
    goal: { text: `≤ ${GOAL_MS} ms`, holds: p50 <= GOAL_MS },
    detail: { pairs },
  }
}

const roomAt = (path: string) => ROOMS.find((one) => one.path === path) as Room

async function scrollRows({ bench, browser, login, origin }: Visit): Promise<Row[]> {
  const count = bench.quick ? 500 : 2_000
  const opened = await open(browser, login, origin, roomAt('/console/credentials'))
  const before = opened.requests()
  const { moving, resting } = await scroll(opened.cdp, count)
  const { failed } = opened
  const requests = opened.requests() - before
  await opened.context.close()
  const longest = Math.max(...moving)
  const atRest = Math.max(...resting)
  const late = moving.filter((gap) => gap > 50).length
  bench.say(
    `${count} rows in ${moving.length} frames: longest gap ${longest.toFixed(0)} ms (at rest ${atRest.toFixed(0)} ms), ${late} above 50 ms; ${requests} requests, ${failed.length} failed`,
  )
  const scenario = `Console, scroll the credentials by ${count} rows`
  return [
    {
      scenario: `${scenario}: between frames`,
      clients: 1,
      figures: { p50: median(moving), p95: quantile(moving, 0.95), p99: quantile(moving, 0.99) },
      comparedWith: `at rest ${median(resting).toFixed(1)}, p99 ${quantile(resting, 0.99).toFixed(1)} ms; longest ${longest.toFixed(0)}, at rest ${atRest.toFixed(0)} ms`,
      ratio: longest / atRest,
      goal: undefined,
      detail: { longest, late, frames: moving.length, moving, resting },
    },
    {
      scenario: `${scenario}: failed requests`,
      clients: 1,
      figures: {},
      comparedWith: `${requests} requests`,
      ratio: failed.length / requests,
      goal: atMost(failed.length, 0),
      detail: { failed },
    },
  ]
}

function quantile(numbers: readonly number[], part: number): number {
  const sorted = [...numbers].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

/** The heap of a page that follows, before and after: the list that it shows is full in between. */
async function heapRows(visit: Visit): Promise<Row[]> {
  const { bench, browser, login, origin } = visit
  const [some, all] = bench.quick ? [200, 600] : [2_000, 10_000]
  const opened = await open(browser, login, origin, roomAt('/console/activity'))
  await opened.page.getByRole('button', { name: 'Follow' }).click()
  await opened.page.getByRole('status').filter({ hasText: /Live$/ }).waitFor()
  await counting(opened)
  await wait(2_000)
  const before = await heapOf(opened.cdp)
  await happen(visit, some)
  const full = await heapOf(opened.cdp)
  await happen(visit, all - some)
  const after = await heapOf(opened.cdp)
  const told = await evaluate<{ entries: number; resets: number }>(opened.cdp, 'globalThis.benchTold')
  await opened.context.close()
  bench.say(
    `heap ${before.mb.toFixed(1)}, ${full.mb.toFixed(1)}, ${after.mb.toFixed(1)} MB; nodes ${before.nodes}, ${full.nodes}, ${after.nodes}; told ${told.entries} entries, ${told.resets} resets`,
  )
  if (told.entries < 0.95 * all) throw new Error(`the page was told only ${told.entries} entries of ${all}`)
  return [
    {
      scenario: `Console, heap of /console/activity after ${all} live events, in MB: ${after.mb.toFixed(1)}`,
      clients: 1,
      figures: {},
      comparedWith: `before ${before.mb.toFixed(1)}, after ${some} ${full.mb.toFixed(1)} MB`,
      ratio: after.mb / full.mb,
      goal: atMost(after.mb / full.mb, HEAP_GOAL),
      detail: { before, full, after, told },
    },
  ]
}

/** Counts in the page what its stream tells it: the tab that reads tells the others, and this channel is one more. */
async function counting({ cdp }: Opened): Promise<void> {
  await evaluate(
    cdp,
    `(globalThis.benchTold = { entries: 0, resets: 0 },
      globalThis.benchChannel = new BroadcastChannel('mayfly.events'),
      benchChannel.onmessage = ({ data }) => {
        if (data.type === 'entry') benchTold.entries += 1
        if (data.type === 'reset') benchTold.resets += 1
      }, undefined)`,
  )
}

/** So many a second that a reader is told each. */
const AT_ONCE = 10
const EVERY_MS = 100

/** Agents issue credentials; each is one event. */
async function happen({ store, server }: Visit, count: number): Promise<void> {
  const json = { backend: BACKEND, ttl: '1h', scopes: SCOPES }
  for (let n = 0; n < count; n += AT_ONCE) {
    const issues = store.tokens
      .slice(0, AT_ONCE)
      .map((bearer) => fetchJson({ method: 'POST', path: '/api/v1/credentials', bearer, json }, server.port))
    await Promise.all([...issues, wait(EVERY_MS)])
  }
  // The last of them are told, and drawn.
  await wait(3_000)
}
