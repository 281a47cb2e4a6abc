import { SPANS } from '../../domain/activity.ts'
import type { Revocations } from '../../domain/backend.ts'
import { lowestBodyAt } from '../../domain/ids.ts'
import { DAY_MS } from '../../domain/limits.ts'
import { readCounted } from '../audit/count-activity.ts'
import { type Unended, unendedAmong } from '../backends/unended.ts'
import type { Core } from '../context.ts'
import { keptFor } from '../kept-for.ts'

const LEAST_FRESH_MS = 1_000
/** One that took longer is shown for so long while the next one is under way. */
const SLOW_MS = 50
const STALE_MS = 30_000

const MOST_BACKENDS = 100
const MOST_AGENTS = 20
/** Requests that are counted. */
const MOST_WAITING = 1_000
/** Entries that are counted here, because the job has not counted them yet. */
const MOST_UNCOUNTED = 50_000
/** The quarters of an hour of a day. */
const POINT_MS = SPANS[1]
const POINTS = DAY_MS / POINT_MS

export interface Overview {
  /** Epoch ms at which everything was counted. */
  readonly at: number
  readonly live: {
    readonly total: number
    readonly byBackend: readonly { readonly backend: string; readonly count: number }[]
    readonly byAgent: readonly { readonly id: string; readonly name: string; readonly count: number }[]
    /** Oldest first; empty when too much is not counted yet. */
    readonly history: readonly { readonly at: number; readonly count: number }[]
  }
  readonly waiting: { readonly count: number; readonly oldest: number | null }
  /** With the newest failed try to end a credential there. */
  readonly unended: readonly (Unended & Pick<Revocations, 'lastFailure'>)[]
  readonly sweepLagMs: number
  /** Undefined: the database does not say. */
  readonly sizeBytes: number | undefined
  readonly entriesOfDay: number
}

type Parts = Pick<Core, 'store' | 'backends' | 'log' | 'revocations'>

/** Counts once for all who ask; a large store is counted again while the last count is shown. */
export function createOverview(core: Parts): () => Promise<Overview> {
  let last: { readonly overview: Overview; readonly readAt: number; readonly tookMs: number } | undefined
  let counting: Promise<Overview> | undefined

  async function count(): Promise<Overview> {
    const begun = performance.now()
    const overview = await readOverview(core)
    const readAt = performance.now()
    last = { overview, readAt, tookMs: readAt - begun }
    return overview
  }

  function countOnce(): Promise<Overview> {
    counting ??= count().finally(() => {
      counting = undefined
    })
    return counting
  }

  return async () => {
    if (last === undefined) return countOnce()
    const { overview, readAt, tookMs } = last
    const age = performance.now() - readAt
    const isSlow = tookMs > SLOW_MS
    if (age < Math.max(LEAST_FRESH_MS, keptFor(tookMs))) return overview
    if (!isSlow || age > STALE_MS) return countOnce()
    countOnce().catch((error: unknown) => core.log.warn({ err: error }, 'the overview could not be counted'))
    return overview
  }
}

async function readOverview(core: Parts): Promise<Overview> {
  const { store } = core
  const at = store.now()
  const [due, unsettled, byAgent, waiting, revocations, sizeBytes] = await Promise.all([
    store.counts.due(at),
    store.counts.unsettled(at),
    largestAgents(core),
    readWaiting(core, at),
    core.revocations.all(),
    store.counts.sizeBytes().catch((error: unknown) => {
      core.log.debug({ err: error }, 'the database does not say how large it is')
      return undefined
    }),
  ])
  const { byUid } = await core.backends.at(await store.generation())
  const byBackend = new Map<string, number>()
  for (const [uid, { later }] of due) {
    const count = later - (unsettled.get(uid)?.later ?? 0)
    const name = byUid.get(uid)?.name ?? uid
    if (count > 0) byBackend.set(name, (byBackend.get(name) ?? 0) + count)
  }
  const ended = new Map(
    [...unsettled].flatMap(([uid, { unended }]) => (unended === undefined ? [] : [[uid, unended]])),
  )
  const earliestDue = [...due.values()].reduce((first, { earliest }) => Math.min(first, earliest), at)
  const total = [...byBackend.values()].reduce((sum, count) => sum + count, 0)
  const { history, entriesOfDay } = await readDay(core, at, total)
  return {
    at,
    live: {
      total,
      byBackend: largest(
        [...byBackend].map(([backend, count]) => ({ backend, count })),
        MOST_BACKENDS,
      ),
      byAgent,
      history,
    },
    waiting,
    unended: (await unendedAmong(core, ended)).map((one) => {
      const { lastFailure } = revocations.get(one.uid) ?? {}
      return lastFailure === undefined ? one : { ...one, lastFailure }
    }),
    sweepLagMs: at - earliestDue,
    sizeBytes,
    entriesOfDay,
  }
}

function largest<T extends { readonly count: number }>(all: T[], most: number): T[] {
  return all.sort((one, other) => other.count - one.count).slice(0, most)
}

/** Without those that have ended: what they held ends. */
async function largestAgents({ store }: Parts): Promise<Overview['live']['byAgent']> {
  const counts = await store.counts.ofAgents()
  const found: { id: string; name: string; count: number }[] = []
  for (const { id, count } of largest(
    [...counts].map(([id, count]) => ({ id, count })),
    2 * MOST_AGENTS,
  )) {
    const agent = await store.agents.findLiving(id)
    if (agent !== undefined) found.push({ id, name: agent.name, count })
  }
  return found.slice(0, MOST_AGENTS)
}

async function readWaiting({ store }: Parts, now: number): Promise<Overview['waiting']> {
  const pending = await store.enrollments.list('pending', undefined, MOST_WAITING)
  const waiting = pending.filter(({ expiresAt }) => expiresAt > now)
  return { count: waiting.length, oldest: waiting[0]?.createdAt ?? null }
}

/** What an entry adds to the number of those that are alive. */
const CHANGE: Readonly<Record<string, number>> = {
  'credential.issued': 1,
  'credential.revoked': -1,
  'credential.expired': -1,
}

interface Day {
  readonly history: Overview['live']['history']
  readonly entriesOfDay: number
}

/** How many were alive in the last day: how many are now, without what has happened since. */
async function readDay({ store }: Parts, now: number, total: number): Promise<Day> {
  const latest = now - (now % POINT_MS)
  const { position, until } = await readCounted({ store })
  const changes = new Map<number, number>()
  let entriesOfDay = 0
  const add = (at: number, { action, count }: { readonly action: string; readonly count: number }) => {
    changes.set(at, (changes.get(at) ?? 0) + count * (CHANGE[action] ?? 0))
    entriesOfDay += count
  }
  const tail = await store.activity.tail(position, lowestBodyAt(latest), MOST_UNCOUNTED)
  for (const one of tail) add(one.isEarlier ? latest - POINT_MS : latest, one)
  const isPart = until < latest - POINT_MS || entriesOfDay >= MOST_UNCOUNTED
  const range = { span: POINT_MS, from: latest - POINTS * POINT_MS, before: latest + DAY_MS }
  const sums = store.activity.sums(range, { step: POINT_MS, byBackend: false })
  for await (const rows of sums) for (const row of rows) add(row.at, row)
  return { history: isPart ? [] : backwards(total, latest, changes), entriesOfDay }
}

function backwards(total: number, latest: number, changes: ReadonlyMap<number, number>) {
  let count = total
  return Array.from({ length: POINTS }, (_, n) => {
    const at = latest - n * POINT_MS
    count -= changes.get(at) ?? 0
    return { at, count: Math.max(0, count) }
  }).reverse()
}
