import type { Activity } from '../../../../src/client/wire.ts'
import { duration, exact } from '../../ui/times.ts'
import { type Action, wordsOf } from './words.ts'

/** What the chart counts, when no action is asked for. */
const GROUPS = [
  { key: 'issued', label: 'issued', actions: ['credential.issued'] },
  { key: 'ended', label: 'ended', actions: ['credential.revoked', 'credential.expired'] },
  {
    key: 'denied',
    label: 'denied or failed',
    actions: ['credential.issue_failed', 'token.refused', 'auth.failed'],
  },
] as const satisfies readonly { key: string; label: string; actions: readonly Action[] }[]

export interface Line {
  readonly key: 'issued' | 'ended' | 'denied'
  readonly label: string
  /** One for each time; null: not counted yet. */
  readonly counts: readonly (number | null)[]
  readonly total: number
}

export interface Points {
  /** Epoch seconds at which each count begins. */
  readonly times: readonly number[]
  readonly stepSeconds: number
  readonly lines: readonly Line[]
}

/** The counts of the server as lines of a chart: a time without entries is 0, one that is not counted yet is null. */
export function pointsOf(activity: Activity, action?: string): Points {
  const step = activity.step_seconds
  const [since, until] = [activity.since, activity.until].map((time) => Date.parse(time) / 1_000) as [
    number,
    number,
  ]
  const counted = Date.parse(activity.counted_until) / 1_000
  const times = Array.from(
    { length: Math.max(0, Math.round((until - since) / step)) },
    (_, n) => since + n * step,
  )
  const groups =
    action === undefined
      ? GROUPS
      : [{ key: 'issued' as const, label: wordsOf(action).toLowerCase(), actions: [action] }]
  const lines = groups.map(({ key, label, actions }): Line => {
    const counts = times.map((time): number | null => (time < counted ? 0 : null))
    for (const one of activity.series) {
      if (!(actions as readonly string[]).includes(one.action)) continue
      for (const { at, count } of one.points) {
        const index = Math.floor((Date.parse(at) / 1_000 - since) / step)
        if (index in counts) counts[index] = (counts[index] ?? 0) + count
      }
    }
    return { key, label, counts, total: counts.reduce<number>((sum, count) => sum + (count ?? 0), 0) }
  })
  return { times, stepSeconds: step, lines }
}

/** The chart in a sentence, for those who do not see it. */
export function sentenceOf({ times, stepSeconds, lines }: Points): string {
  const first = times[0]
  if (first === undefined) return 'Nothing is counted.'
  const last = (times.at(-1) ?? first) + stepSeconds
  const sums = lines.map(({ total, label }) => `${total.toLocaleString('en')} ${label}`).join(', ')
  const [main] = lines
  const most = Math.max(0, ...(main?.counts ?? []).map((count) => count ?? 0))
  const peak = most === 0 ? undefined : times[main?.counts.indexOf(most) ?? -1]
  const busiest =
    peak === undefined
      ? ''
      : ` Most ${main?.label} in ${duration(stepSeconds)} from ${exact(peak * 1_000)}: ${most.toLocaleString('en')}.`
  return `From ${exact(first * 1_000)} to ${exact(last * 1_000)}: ${sums}.${busiest}`
}

/**
 * A stretch of the chart as the time of the list: whole steps, so that the list has what the bars count. What reaches to now goes on.
 * All in epoch seconds.
 */
export function rangeOf(
  stretch: readonly [number, number],
  step: number,
  now: number,
): { since: string; until: string | undefined } {
  const since = Math.floor(Math.min(...stretch) / step) * step
  const until = Math.max(since + step, Math.ceil(Math.max(...stretch) / step) * step)
  const iso = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z')
  return { since: iso(since), until: until > now ? undefined : iso(until) }
}
