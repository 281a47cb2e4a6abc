import { DAY_MS, HOUR_MS, MINUTE_MS } from './limits.ts'

/** Points of one series of the activity. */
export const MAX_ACTIVITY_POINTS = 1_000
/** Points that a step which nobody gave makes at most. */
const USUAL_POINTS = 120

/** The times, in ms, for which entries are counted, smallest first: each divides the next. */
export const SPANS = [MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, DAY_MS] as const

const STEPS = [1, 2, 5, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * MINUTE_MS)

/** The step that shows so long a time in at most 120 points. */
export function usualStep(lengthMs: number): number {
  const step = STEPS.find((one) => lengthMs <= one * USUAL_POINTS)
  return step ?? Math.max(1, Math.ceil(lengthMs / USUAL_POINTS / DAY_MS)) * DAY_MS
}

/** The largest span whose counts make up this step, a multiple of a minute. */
export function spanOf(step: number): number {
  return SPANS.findLast((span) => step % span === 0) ?? MINUTE_MS
}
