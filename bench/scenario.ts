import type { Row } from './report.ts'
import type { Pace } from './turns.ts'

export interface Bench {
  readonly pace: Pace
  readonly quick: boolean
  readonly large: boolean
  readonly fromSource: boolean
  /** Parent of temporary directories; the system's where undefined. */
  readonly directory: string | undefined
  /** For Node when it runs our server. */
  readonly nodeArgs: readonly string[]
  /** A line of progress. */
  say(line: string): void
}

export interface Scenario {
  readonly name: string
  readonly title: string
  run(bench: Bench): Promise<readonly Row[]>
}
