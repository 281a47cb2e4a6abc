/** The clocks of a machine. */
export interface Clocks {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds, never set back; stands still while the machine sleeps. */
  monotonic(): number
}

/**
 * Milliseconds since `agoMs` ago. Of both clocks the one that says more, so that neither a clock that is set back nor a machine
 * that sleeps prolongs anything. A clock that is set forward ends things early, which does no harm.
 */
export function stopwatch({ now, monotonic }: Clocks, agoMs = 0): () => number {
  const wall = now()
  const start = monotonic()
  return () => agoMs + Math.max(now() - wall, monotonic() - start)
}
