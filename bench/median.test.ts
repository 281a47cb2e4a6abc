import { expect, it } from 'vitest'
import { median } from './median.ts'

it('takes the middle number, or the mean of the two middle ones', () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, Number.NaN])
})
