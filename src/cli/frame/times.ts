const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A time for people: `in 9 min`, `3 h ago`. Any other text stays as it is. */
export function relative(time: string, now: number): string {
  const at = Date.parse(time)
  if (Number.isNaN(at)) return time
  const distance = duration(Math.abs(at - now))
  return at > now ? `in ${distance}` : `${distance} ago`
}

/** `42 s`, `9 min`, `3 h`, `30 days`: a larger unit once it says enough. */
function duration(ms: number): string {
  if (ms < 90 * SECOND) return `${Math.max(1, Math.round(ms / SECOND))} s`
  if (ms < 90 * MINUTE) return `${Math.round(ms / MINUTE)} min`
  if (ms < 36 * HOUR) return `${Math.round(ms / HOUR)} h`
  return `${Math.round(ms / DAY)} days`
}
