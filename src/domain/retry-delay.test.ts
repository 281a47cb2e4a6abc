import { expect, test } from 'vitest'
import { retryDelay } from './retry-delay.ts'

test('retries: between 1 ms and the ceiling, which doubles up to its cap', () => {
  const nearly = 1 - 2 ** -53
  expect(retryDelay(0, 0, 1_000, 900_000)).toBe(1)
  expect(retryDelay(0, nearly, 1_000, 900_000)).toBe(999)
  expect(retryDelay(3, nearly, 1_000, 900_000)).toBe(7_999)
  expect(retryDelay(3, 0.5, 1_000, 900_000)).toBe(4_000)
  for (const attempts of [10, 30, 1_000, 1e9])
    expect(retryDelay(attempts, nearly, 1_000, 900_000)).toBe(899_999)
})
