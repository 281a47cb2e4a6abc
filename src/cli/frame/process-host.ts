import type { Host } from './program.ts'
import { Interrupted, NO_HOME } from './surroundings.ts'

const GRACE_MS = 2_000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Gives this process to verbs as their surroundings. */
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
      // As node:os says it, which takes time to load.
      return homeOf(() => process.env['HOME'] ?? process.getBuiltinModule('node:os').homedir())
    },
    platform: process.platform,
    now: Date.now,
    watchSignals,
  }
}

/**
 * `NO_HOME` for a user without a home directory, and if it is empty or relative: that would be a directory below the
 * working directory, whose files others may own. No file can exist below `NO_HOME`.
 */
export function homeOf(find: () => string): string {
  try {
    const home = find()
    return home.startsWith('/') || process.platform === 'win32' ? home : NO_HOME
  } catch {
    return NO_HOME
  }
}

/** The writer handles failed writes. Without a listener, Node would end the process with a stack trace. */
function heard<T extends NodeJS.WriteStream>(stream: T): T {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
  return stream
}

function ignore(): void {}

/** The first signal asks the verb to end. A second one ends the process at once, as do two seconds of waiting. */
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
