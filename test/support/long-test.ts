import { test } from 'vitest'
import { LONG } from './long.ts'

/** A test that only `npm run test:long` runs. */
export function longTest(name: string, run: () => Promise<void>): void {
  if (LONG) test(name, run)
}
