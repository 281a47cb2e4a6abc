import { test } from 'vitest'
import { LONG } from './long.ts'

/** A test that `npm run test:long` alone has. */
export function longTest(name: string, run: () => Promise<void>): void {
  if (LONG) test(name, run)
}
