import { expect, it } from 'vitest'
import { createHorizon, type Moment } from './horizon.ts'

/** Asks with these moments, one after the other. */
function horizonOf(...moments: [xmin: number, xmax: number, at: number][]) {
  const left = moments.map(([xmin, xmax, at]): Moment => ({ xmin: BigInt(xmin), xmax: BigInt(xmax), at }))
  return createHorizon(async () => {
    const next = left.shift()
    if (next === undefined) throw new Error('no more moments')
    return next
  })
}

it('is some time ago while no transaction is open', async () => {
  const horizon = horizonOf([10, 10, 100_000], [10, 10, 107_000])
  expect([await horizon(), await horizon()]).toEqual([70_000, 77_000])
})

it('stays before the first of the open transactions, and follows once it has ended', async () => {
  const horizon = horizonOf(
    [10, 12, 100_000],
    [10, 15, 200_000],
    [11, 20, 300_000],
    // Those before the first moment have ended, then those before the second.
    [12, 21, 400_000],
    [16, 30, 500_000],
    [30, 30, 600_000],
  )
  const seen: number[] = []
  for (let n = 0; n < 6; n += 1) seen.push(await horizon())
  expect(seen).toEqual([-Infinity, -Infinity, -Infinity, 70_000, 170_000, 570_000])
})

it('follows a clock that is set back', async () => {
  const horizon = horizonOf([10, 10, 1_000_000], [10, 10, 400_000])
  expect([await horizon(), await horizon()]).toEqual([970_000, 370_000])
})

it('remembers the oldest moment, however often it is asked meanwhile', async () => {
  const asked = Array.from({ length: 500 }, (_, n): [number, number, number] => [10, 11 + n, n * 1_000])
  const horizon = horizonOf([10, 11, 0], ...asked, [11, 900, 800_000])
  for (let n = 0; n < 501; n += 1) await horizon()
  expect(await horizon()).toBe(-30_000)
})
