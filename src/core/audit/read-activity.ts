import { MAX_ACTIVITY_POINTS, spanOf, usualStep } from '../../domain/activity.ts'
import { requireDuration } from '../../domain/duration.ts'
import { DAY_MS, MINUTE_MS } from '../../domain/limits.ts'
import { invalid } from '../../domain/problems.ts'
import type { Activity } from '../../store/tables/activity.ts'
import type { Core } from '../context.ts'
import { findBackendName } from '../find-named.ts'
import { readAction, readTime } from './audit-filters.ts'
import { readCounted } from './count-activity.ts'

/** Points in one reply. */
const MOST_POINTS = 50_000
/** Rows that one reply is made of. */
const MOST_ROWS = 1_000_000

export interface ActivityQuestion {
  /** ISO 8601, or a duration before now. */
  readonly since?: string | undefined
  readonly until?: string | undefined
  /** A duration. */
  readonly step?: string | undefined
  readonly backend?: string | undefined
  readonly action?: string | undefined
  readonly by?: string | undefined
}

export interface Series {
  /** Empty: entries about no backend, or about all. */
  readonly backend: string
  readonly action: string
  /** Counts by the time, epoch ms, at which they begin; oldest first. */
  readonly points: readonly (readonly [at: number, count: number])[]
}

export interface ActivityView {
  /** Epoch ms. */
  readonly since: number
  readonly until: number
  readonly step: number
  readonly countedUntil: number
  readonly series: readonly Series[]
}

/** Of one row, or of `rows` that were added up. */
type Counts = Activity & { readonly rows?: number }

/** Reads counts, never entries: it costs the same however many entries there are. */
export async function readActivity(
  core: Pick<Core, 'store'>,
  question: ActivityQuestion,
): Promise<ActivityView> {
  const { step, since, until } = readRange(question, core.store.now())
  const action = readAction(question.action)
  const backend = await findBackendName(core, question.backend)
  // First: what is counted from now on may be shown, too.
  const { until: countedUntil } = await readCounted(core)
  const series = createSeries(step)
  let read = 0
  const byBackend = question.by !== 'action'
  const range = { span: spanOf(step), from: since, before: until, backend, action }
  const { rows, sums } = core.store.activity
  const isEach = byBackend && step === range.span
  const parts: AsyncIterable<readonly Counts[]> = isEach ? rows(range) : sums(range, { step, byBackend })
  for await (const part of parts)
    for (const counts of part) {
      read += byBackend ? (counts.rows ?? 1) : 1
      if (read > MOST_ROWS) throw tooLarge()
      series.add(counts)
    }
  return { since, until, step, countedUntil, series: series.all() }
}

/** The requested time, rounded outwards to multiples of the step. */
function readRange({ since, until, step: asked }: ActivityQuestion, now: number) {
  // Nothing has been counted of what is to come.
  const end = until === undefined ? now : Math.min(readTime(until, 'until', now), now)
  const start = since === undefined ? end - DAY_MS : readTime(since, 'since', now)
  if (start < 0 || end <= start) throw invalid('"since" must be a time before "until", and not before 1970.')
  const step = asked === undefined ? usualStep(end - start) : requireDuration(asked, 'step')
  if (step % MINUTE_MS !== 0) throw invalid('"step" must be a multiple of a minute.')
  const range = { step, since: start - (start % step), until: Math.ceil(end / step) * step }
  if ((range.until - range.since) / step > MAX_ACTIVITY_POINTS)
    throw invalid(`"step" is too short for this time: it makes more than ${MAX_ACTIVITY_POINTS} points.`)
  return range
}

function createSeries(step: number) {
  const series = new Map<string, { backend: string; action: string; counts: Map<number, number> }>()
  let points = 0
  return {
    add(row: Activity) {
      const { backend } = row
      const key = `${row.action} ${backend}`
      let one = series.get(key)
      if (one === undefined) {
        one = { backend, action: row.action, counts: new Map() }
        series.set(key, one)
      }
      const at = row.at - (row.at % step)
      const before = one.counts.get(at)
      if (before === undefined && ++points > MOST_POINTS) throw tooLarge()
      one.counts.set(at, (before ?? 0) + row.count)
    },
    all: (): Series[] =>
      [...series.entries()]
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .map(([, { backend, action, counts }]) => ({
          backend,
          action,
          points: [...counts].sort(([one], [other]) => one - other),
        })),
  }
}

function tooLarge() {
  return invalid(
    'There is too much activity for one reply: ask for a shorter time, a longer "step", one "backend" or "action", or "by=action".',
  )
}
