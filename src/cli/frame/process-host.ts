import type { Host } from './program.ts'
import { Interrupted, NO_HOME } from './surroundings.ts'

const GRACE_MS = 2_000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** This process as the surroundings of a verb. */
export function processHost(): Host {
  return {
    get stdin() {
      return process.stdin
    },
    get stdout() {
      return heard(process.stdout)
    },
    get stderr() {
      return heard(process.stderr)
    },
    env: process.env,
    get cwd() {
      return process.cwd()
    },
    get home() {
      return homeOf(process.getBuiltinModule('node:os').homedir)
    },
    platform: process.platform,
    now: Date.now,
    watchSignals,
  }
}

/**
 * A home that is empty or relative would be one in the working directory, whose files are anybody's: there is none
 * then, nor for a user whom the system does not know. Below this path nothing can be.
 */
export function homeOf(find: () => string): string {
  try {
    const home = find()
    return home.startsWith('/') || process.platform === 'win32' ? home : NO_HOME
  } catch {
    return NO_HOME
  }
}

/** What cannot be written is told to whoever wrote it; unheard, it would end the process with a stack. */
function heard<T extends NodeJS.WriteStream>(stream: T): T {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
  return stream
}

function ignore(): void {}

/** The first signal asks the verb to end, the second one ends at once, and so do two seconds without an end. */
function watchSignals(): AbortSignal {
  const controller = new AbortController()
  for (const name of SIGNALS) {
    process.on(name, (_: NodeJS.Signals, number: number) => {
      const interrupted = new Interrupted(number)
      if (controller.signal.aborted) process.exit(interrupted.exitCode)
      setTimeout(() => process.exit(interrupted.exitCode), GRACE_MS).unref()
      controller.abort(interrupted)
    })
  }
  return controller.signal
}
