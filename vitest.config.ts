import { configDefaults, defineConfig } from 'vitest/config'
import { recordTried, triedFiles } from './test/docs/tried.ts'
import { COMPILE_CACHE } from './test/support/compile-cache.ts'
import { LONG } from './test/support/long.ts'
import { filesWithoutPrograms, reportLeftOut } from './test/support/needed-programs.ts'
import { isInstalled } from './test/support/run-program.ts'
import { slowest } from './test/support/slowest.ts'

/** Debian has no package of terraform: where it is absent, CI goes without, and a person is told of the skip. */
const absent =
  process.env['CI'] !== undefined && !isInstalled('terraform') ? ['test/real/terraform.test.ts'] : []

const words = process.argv.slice(2)
/** Files that need programs which are not here. A file that somebody names says itself what it misses. */
const without = filesWithoutPrograms((file) =>
  words.some((word) => word.endsWith('.ts') && file.endsWith(word)),
)

/** Several minutes each, in one piece, or pages that have not changed: `npm run test:long` runs them. */
const long = LONG
  ? []
  : [
      ...['debian', 'first-credential', 'image', 'npm'].map((name) => `test/package/package-${name}.test.ts`),
      // Unless somebody names one.
      ...triedFiles().filter((file) => !words.some((word) => file.includes(word))),
    ]

export default defineConfig({
  test: {
    include: [
      'src/**/*.test.ts',
      'test/**/*.test.ts',
      'scripts/**/*.test.ts',
      'bench/**/*.test.ts',
      'web/**/*.test.ts',
    ],
    exclude: [...configDefaults.exclude, ...absent, ...long, ...without.keys()],
    reporters: ['default', slowest, recordTried, reportLeftOut(without)],
    globalSetup: ['test/support/shared-postgres.ts'],
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE },
    // What hangs is ended by these; what is merely slow, on a machine that others use, must pass.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    // Two cores, but many tests wait for a server. Files share a worker: none leaves state that another could see.
    maxWorkers: 3,
    isolate: false,
  },
})
