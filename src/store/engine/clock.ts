/**
 * Epoch ms that never go back: the wall clock while it runs ahead, and the monotonic clock's pace from the last
 * good reading when the wall clock is set back, so that expiry neither stops nor repeats.
 */
export function createClock(
  floor = 0,
  wall: () => number = Date.now,
  monotonic: () => number = () => performance.now(),
) {
  let anchor = Math.max(floor, wall())
  let anchoredAt = monotonic()
  return (): number => {
    const at = monotonic()
    const carried = anchor + Math.floor(at - anchoredAt)
    const read = wall()
    if (read < carried) return carried
    anchor = read
    anchoredAt = at
    return read
  }
}
