import { InvalidValue, quote } from './fault.ts'
import { invalid } from './problems.ts'

/** Milliseconds in one of each unit, largest first. */
const UNITS = [
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

const DURATION = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/

/** A thousand years: longer than any ttl or lifetime; now plus this still has a four-digit year (RFC 3339). */
export const LONGEST_MS = 31_536_000_000_000

/**
 * Milliseconds of a duration such as `1h30m`: units `w d h m s ms`, each at most once, largest first.
 * Returns at most `LONGEST_MS`, so that an absurd ttl is refused as too long and never overflows. Returns `undefined`
 * for zero and for any other text.
 */
export function parseDuration(text: string): number | undefined {
  if (text.length === 0 || text.length > 256) return undefined
  const match = DURATION.exec(text)
  if (match === null) return undefined
  let total = 0
  UNITS.forEach(([, size], index) => {
    const count = match[index + 1]
    if (count !== undefined) total += Number(count) * size
  })
  if (total === 0) return undefined
  return Math.min(total, LONGEST_MS)
}

/** Like `parseDuration`, but throws `invalid_request`, which names the field. */
export function requireDuration(text: string, field: string): number {
  const value = parseDuration(text)
  if (value === undefined) throw invalid(`"${field}" is not a duration: write it as 45s, 10m, 1h30m or 7d.`)
  return value
}

/** Like `requireDuration`, for stored bounds and lifetimes: refuses `LONGEST_MS` and more instead of capping. */
export function requireLifetime(text: string, field: string): number {
  const value = requireDuration(text, field)
  if (value >= LONGEST_MS) throw invalid(`"${field}" must be less than a thousand years.`)
  return value
}

/** The shortest exact form with the units `h m s ms` and above: 5400000 → `1h30m`. Whole positive ms only. */
export function formatDuration(ms: number): string {
  if (!Number.isSafeInteger(ms) || ms <= 0)
    throw new RangeError('a duration must be a positive whole number of ms')
  let rest = ms
  let text = ''
  for (const [unit, size] of UNITS) {
    if (unit === 'w' || unit === 'd') continue
    const count = Math.floor(rest / size)
    if (count > 0) text += `${count}${unit}`
    rest -= count * size
  }
  return text
}

/** Milliseconds, from `least` to `most`. */
export function parseBoundedDuration(text: string, least: number, most: number): number {
  const value = parseDuration(text)
  if (value === undefined) {
    throw new InvalidValue(`${quote(text)} is not a duration: write it as 45s, 10m, 1h30m or 7d`)
  }
  if (value < least || value > most) {
    throw new InvalidValue(
      `${quote(text)} is not between ${formatDuration(least)} and ${formatDuration(most)}`,
    )
  }
  return value
}
