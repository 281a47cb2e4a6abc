/** Counting then takes at most a twentieth of one core. */
const PER_TAKEN = 20
const MOST_MS = 20_000

/** How long, in ms, a count that took `tookMs` serves all who ask. */
export function keptFor(tookMs: number): number {
  return Math.min(MOST_MS, PER_TAKEN * tookMs)
}
