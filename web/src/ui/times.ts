const UNITS = [
  ['y', 365 * 86_400],
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const

/** `90` → `1m 30s`: the two largest units, as the command shows durations. */
export function duration(seconds: number): string {
  let rest = Math.max(0, Math.round(seconds))
  if (rest === 0) return '0s'
  const parts: string[] = []
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size)
    if (count > 0) parts.push(`${count}${unit}`)
    else if (parts.length > 0) break
    rest -= count * size
    if (parts.length === 2) break
  }
  return parts.join(' ')
}

/** `5m ago`, `in 2h`: one unit, for lists. */
export function relative(time: number, now: number): string {
  const seconds = Math.round((time - now) / 1_000)
  if (Math.abs(seconds) < 5) return 'now'
  const [one] = duration(Math.abs(seconds)).split(' ')
  return seconds < 0 ? `${one} ago` : `in ${one}`
}

/** `2026-11-26 21:40:03 UTC` */
export function exact(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
