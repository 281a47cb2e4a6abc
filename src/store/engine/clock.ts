/** A wall clock that is behind by less than this is only being adjusted, in ms. */
export const CLOCK_SLACK_MS = 60_000

/**
 * Epoch ms that never go back: the wall clock while it runs ahead, and the monotonic clock's pace from the last
 * good reading when the wall clock is set back, so that expiry neither stops nor repeats. `onBehind` hears once of each time
 * that the wall clock falls behind, by how many ms.
 */
export function createClock(
  floor = 0,
  wall: () => number = Date.now,
  monotonic: () => number = () => performance.now(),
  onBehind: (ms: number) => void = () => undefined,
) {
  let anchor = Math.max(floor, wall())
  let anchoredAt = monotonic()
  let isTold = false
  return (): number => {
    const at = monotonic()
    const carried = anchor + Math.floor(at - anchoredAt)
    const read = wall()
    if (read < carried) {
      if (!isTold && carried - read >= CLOCK_SLACK_MS) {
        isTold = true
        onBehind(carried - read)
      }
      return carried
    }
    isTold = false
    anchor = read
    anchoredAt = at
    return read
  }
}
