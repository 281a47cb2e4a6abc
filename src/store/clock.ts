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
    const carried = anchor + Math.floor(monotonic() - anchoredAt)
    const read = wall()
    if (read >= carried) {
      anchor = read
      anchoredAt = monotonic()
      return read
    }
    return carried
  }
}
