import type { Activity } from '../../../../src/client/wire.ts'

export interface Count {
  readonly at: string
  readonly count: number
}

/** What an entry adds to the number of credentials that are alive. */
const CHANGE: Readonly<Record<string, number>> = {
  'credential.issued': 1,
  'credential.revoked': -1,
  'credential.expired': -1,
}

/**
 * How many credentials of a backend were alive at the beginning of each step: how many are now, without what has happened since.
 * Oldest first, and never less than none.
 */
export function historyOf(now: number, { since, until, step_seconds, series }: Activity): readonly Count[] {
  const changes = new Map<number, number>()
  for (const { action, points } of series) {
    const change = CHANGE[action]
    if (change === undefined) continue
    for (const { at, count } of points) {
      const time = Date.parse(at)
      changes.set(time, (changes.get(time) ?? 0) + change * count)
    }
  }
  const [first, step] = [Date.parse(since), step_seconds * 1_000]
  const steps = Math.max(0, Math.round((Date.parse(until) - first) / step))
  let count = now
  return Array.from({ length: steps }, (_, n) => {
    const time = first + (steps - 1 - n) * step
    count -= changes.get(time) ?? 0
    return { at: new Date(time).toISOString(), count: Math.max(0, count) }
  }).reverse()
}

const WIDTH = 1_000
const HEIGHT = 100

/** The paths of an area chart in a box of 1000 × 100: its upper line, and all under it. Undefined with fewer than two counts. */
export function areaOf(counts: readonly number[]): { line: string; area: string } | undefined {
  if (counts.length < 2) return undefined
  const most = Math.max(1, ...counts)
  const points = counts.map((count, index) => {
    const x = (index / (counts.length - 1)) * WIDTH
    // A line of the full height would be cut in half by the edge.
    const y = HEIGHT - (count / most) * (HEIGHT - 4) - 2
    return `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`
  })
  const line = `M${points.join('L')}`
  return { line, area: `${line}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z` }
}

/** The chart in a sentence. */
export function sentenceOf(what: string, history: readonly Count[], now: number): string {
  const counts = history.map(({ count }) => count)
  if (counts.length === 0) return `${what}: ${now} now.`
  const most = Math.max(now, ...counts)
  return `${what}: ${counts[0]} a day ago, ${now} now, at most ${most} in between.`
}
