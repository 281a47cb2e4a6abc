import type { Pace } from './bursts.ts'
import type { KindOptions } from './postgres-kind/options.ts'
import type { Row } from './report.ts'
import type { Checkout } from './server.ts'

export interface Bench {
  readonly pace: Pace
  readonly quick: boolean
  /** The checkout to measure. */
  readonly checkout: Checkout
  /** The checkout to compare with; undefined compares with the bare machine. */
  readonly against: Checkout | undefined
  /** Parent of temporary directories; undefined means the system's. */
  readonly directory: string | undefined
  /** Arguments for Node when it runs the server. */
  readonly nodeArgs: readonly string[]
  /** Of the scenario `postgres-kind`. */
  readonly kind: KindOptions
  /** Prints a line of progress. */
  say(line: string): void
}

export interface Scenario {
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<readonly Row[]>
}
