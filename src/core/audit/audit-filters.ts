import { ACTIONS } from '../../domain/actions.ts'
import { parseDuration } from '../../domain/duration.ts'
import { invalid } from '../../domain/problems.ts'

/** Throws `invalid_request` for what is no audit action. */
export function readAction(action: string | undefined): string | undefined {
  if (action === undefined || (ACTIONS as readonly string[]).includes(action)) return action
  throw invalid('"action" is not an audit action; see the audit reference.')
}

const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** Epoch ms of a time (ISO 8601), or of a duration before `now`. Throws `invalid_request`, which names the field. */
export function readTime(text: string, field: string, now: number): number {
  const duration = parseDuration(text)
  if (duration !== undefined) return now - duration
  const time = ISO.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(time))
    throw invalid(`"${field}" must be a time such as 2026-01-31T12:00:00Z or a duration such as 24h.`)
  return time
}

/** Whether the calendar has that day: `Date.parse` reads February 30th as March 2nd. */
function isDay(day: string): boolean {
  const time = Date.parse(day)
  return !Number.isNaN(time) && new Date(time).toISOString().slice(0, 10) === day
}
