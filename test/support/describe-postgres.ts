import { describe, it } from 'vitest'
import { availablePostgresVersions, INSTALL_POSTGRES, POSTGRES_MAJORS } from './postgres-versions.ts'

/**
 * Declares the same tests for each of the major versions. Those of a version that is not installed are reported as skipped; in
 * CI that is a failure.
 */
export function describePostgresVersions(
  tests: (major: number) => void,
  majors: readonly number[] = POSTGRES_MAJORS,
): void {
  const available = availablePostgresVersions()
  for (const major of majors) {
    if (available.includes(major)) describe(`PostgreSQL ${major}`, () => tests(major))
    else if (process.env['CI'] === 'true') {
      it(`PostgreSQL ${major}`, () =>
        Promise.reject(new Error(`PostgreSQL ${major} is missing: ${INSTALL_POSTGRES}`)))
    } else it.skip(`PostgreSQL ${major} (not installed: ${INSTALL_POSTGRES})`, () => {})
  }
}
