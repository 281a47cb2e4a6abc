import { existsSync } from 'node:fs'
import type { Host } from '../backends/kind.ts'
import { installation, type ModuleCommand } from '../installation.ts'
import type { Program } from './program.ts'

/** What an administrator says of the processes of plugins. */
export interface Isolation {
  /** The user that they run as; absent: that of the server. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
  /** Variables that they see beside those of the protocol. */
  readonly environment?: Readonly<Record<string, string>> | undefined
  /** Memory that one may use for data. */
  readonly memoryBytes?: number | undefined
  /** How long one may take until it is ready, in ms. */
  readonly startMs?: number | undefined
}

/** How the processes of a plugin are started and watched. */
export interface PluginOptions {
  readonly isolation: Isolation
  readonly log: Host['log']
  /** Called when a process of this backend has ended that nobody stopped; `how`: "exit code 1" or "signal SIGKILL". */
  onEnd?(backend: string, how: string): void
}

const DEFAULT_MEMORY_BYTES = 1024 * 1024 * 1024
const MIB = 1024 * 1024
/** `node:sqlite` opens any file, for writing, too: the permission model does not ask it. */
const NO_SQLITE = '--no-experimental-sqlite'
const PRLIMIT = '/usr/bin/prlimit'
const SETPRIV = '/usr/bin/setpriv'

/**
 * The command of a plugin. Where util-linux is there, the kernel ends the process together with the server, whatever ends that, and
 * denies it memory beyond the limit and new privileges. Not the address space is limited (RLIMIT_AS) but what is written to
 * (RLIMIT_DATA): Go and V8 reserve far more addresses than they use.
 */
export function commandOf(
  program: Program,
  { memoryBytes = DEFAULT_MEMORY_BYTES }: Isolation,
): ModuleCommand {
  const setpriv = existsSync(SETPRIV) ? [SETPRIV, '--pdeathsig', 'KILL', '--no-new-privs', '--'] : []
  const prlimit = existsSync(PRLIMIT) ? [PRLIMIT, `--data=${memoryBytes}`, '--core=0', '--'] : []
  const { words, environment } = programOf(program, memoryBytes)
  return { words: [...setpriv, ...prlimit, ...words], environment }
}

function programOf(program: Program, memoryBytes: number): ModuleCommand {
  if (program.runtime === 'executable') return { words: [program.entry], environment: {} }
  // Its own folder to read, nothing to write; no child processes, workers, addons, inspector.
  const flags = ['--permission', `--allow-fs-read=${program.folder}`, NO_SQLITE]
  const heap = `--max-old-space-size=${Math.max(32, Math.floor(memoryBytes / MIB / 2))}`
  return installation.moduleCommand([...flags, heap], program.entry)
}
