/** A wall clock that is behind by less than this is only being adjusted, in ms. */
export const CLOCK_SLACK_MS = 60_000
/** A wall clock that has been behind by the same amount for this long was set back, and is followed. In ms. */
export const CONFIRM_MS = 60_000
/** Readings that differ by less agree, in ms. */
const AGREE_MS = 1_000

export interface ClockParts {
  /** Epoch ms at which it starts, if the wall clock is behind that. */
  readonly floor?: number
  readonly wall?: () => number
  readonly monotonic?: () => number
  /** Called once each time the wall clock falls behind, with the number of ms. */
  readonly onBehind?: (ms: number) => void
  /** Called after the wall clock was followed back, with the number of ms. */
  readonly onFollow?: (ms: number) => void
}

/**
 * Epoch ms: the wall clock while it runs ahead, and the monotonic clock's pace from the last good reading when the wall
 * clock is set back, so that a short error repeats nothing. A step back is followed once it is confirmed: this clock
 * dates what Mayfly signs, and others check the date by their own clocks.
 */
export function createClock(parts: ClockParts = {}): () => number {
  const { wall = Date.now, monotonic = () => performance.now() } = parts
  let anchor = Math.max(parts.floor ?? 0, wall())
  let anchoredAt = monotonic()
  let behind: { readonly ms: number; readonly since: number; isTold: boolean } | undefined

  function follow(read: number, at: number): number {
    behind = undefined
    anchor = read
    anchoredAt = at
    return read
  }

  return () => {
    const at = monotonic()
    const carried = anchor + Math.floor(at - anchoredAt)
    const read = wall()
    const ms = carried - read
    if (ms <= 0) return follow(read, at)
    if (behind === undefined || Math.abs(ms - behind.ms) > AGREE_MS)
      behind = { ms, since: at, isTold: behind?.isTold ?? false }
    if (!behind.isTold && ms >= CLOCK_SLACK_MS) {
      behind.isTold = true
      parts.onBehind?.(ms)
    }
    if (ms <= AGREE_MS || at - behind.since < CONFIRM_MS) return carried
    parts.onFollow?.(ms)
    return follow(read, at)
  }
}
