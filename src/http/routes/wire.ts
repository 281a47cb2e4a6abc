import { DAY_MS } from '../../domain/limits.ts'

const digits = (length: number, count: number) =>
  Array.from({ length: count }, (_, n) => String(n).padStart(length, '0'))
const TWO = digits(2, 60)
const THREE = digits(3, 1_000)
/** 9999-12-31, counted from 1970-01-01. */
const LAST_DAY = 2_932_896

/**
 * Epoch ms as RFC 3339 in UTC with milliseconds: the text of `toISOString` at a fifth of its cost (some 130 ns, three
 * times per issue). Throws `RangeError` for a number that is no time.
 */
export function timestamp(ms: number): string {
  const day = Math.floor(ms / DAY_MS)
  if (!(day >= 0 && day <= LAST_DAY)) return new Date(ms).toISOString()
  const rest = ms - day * DAY_MS
  const seconds = Math.floor(rest / 1_000)
  const minutes = Math.floor(seconds / 60)
  return `${dateOf(day)}T${TWO[Math.floor(minutes / 60)]}:${TWO[minutes % 60]}:${TWO[seconds % 60]}.${THREE[Math.floor(rest % 1_000)]}Z`
}

/** Gregorian date of a day since 1970 (Hinnant, "chrono-Compatible Low-Level Date Algorithms"): years start in March. */
function dateOf(day: number): string {
  const shifted = day + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const leaps = Math.floor(dayOfEra / 1_460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096)
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365)
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const dayOfMonth = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  return `${year}-${TWO[month]}-${TWO[dayOfMonth]}`
}

export function timestampOrNull(ms: number | null): string | null {
  return ms === null ? null : timestamp(ms)
}

/** An object with that key, or an empty one when the value is undefined or null. */
export function optional<K extends string, V>(key: K, value: V | undefined | null): { [P in K]?: V } {
  return value === undefined || value === null ? {} : ({ [key]: value } as { [P in K]?: V })
}

/** Absent when empty. */
export function presentWarnings(warnings: readonly string[]): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] }
}
