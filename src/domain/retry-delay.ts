/** Full jitter: a whole number of ms up to `base × 2^attempts`, capped. `random` is in [0, 1). */
export function retryDelay(attempts: number, random: number, baseMs: number, capMs: number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempts, 30))
  return Math.max(1, Math.floor(random * ceiling))
}
