import { DAY_MS } from '../../domain/limits.ts'

const digits = (length: number, count: number) =>
  Array.from({ length: count }, (_, n) => String(n).padStart(length, '0'))
const TWO = digits(2, 60)
const THREE = digits(3, 1_000)
let lastDay = Number.NaN
let lastDate = ''

/**
 * From the units of the code to those of the wire: RFC 3339 in UTC with milliseconds, as `toISOString` writes it, for
 * a fraction of its time where the day is that of the last call. Throws `RangeError` for what is no time.
 */
export function timestamp(ms: number): string {
  const day = Math.floor(ms / DAY_MS)
  if (day !== lastDay) {
    const text = new Date(day * DAY_MS).toISOString()
    lastDate = text.slice(0, text.indexOf('T') + 1)
    lastDay = day
  }
  const rest = ms - day * DAY_MS
  const seconds = Math.floor(rest / 1_000)
  const minutes = Math.floor(seconds / 60)
  return `${lastDate}${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${THREE[Math.floor(rest % 1_000)]}Z`
}

export function timestampOrNull(ms: number | null): string | null {
  return ms === null ? null : timestamp(ms)
}

/** Leaves out what is undefined or null. */
export function optional<K extends string, V>(key: K, value: V | undefined | null): { [P in K]?: V } {
  return value === undefined || value === null ? {} : ({ [key]: value } as { [P in K]?: V })
}
