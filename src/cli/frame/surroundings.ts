import type { Readable, Writable } from 'node:stream'

export interface TerminalInput extends Readable {
  readonly isTTY?: boolean
  setRawMode?(on: boolean): unknown
}

export interface TerminalOutput extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

export const NO_HOME = '/dev/null'

/** Everything that a verb may know about its process. */
export interface Surroundings {
  readonly stdin: TerminalInput
  readonly stdout: TerminalOutput
  readonly stderr: TerminalOutput
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The user's home directory, absolute; `NO_HOME` if there is none. */
  readonly home: string
  readonly platform: NodeJS.Platform
  /** Epoch milliseconds. */
  now(): number
  /** Aborted by SIGINT, SIGTERM or SIGHUP; the reason is an `Interrupted`. */
  readonly signal: AbortSignal
}

/** A signal asked the process to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly exitCode: number

  constructor(signalNumber: number) {
    super('interrupted')
    this.exitCode = 128 + signalNumber
  }
}
