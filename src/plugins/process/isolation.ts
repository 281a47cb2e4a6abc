import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Host } from '../../backends/kind.ts'
import { installation, type ModuleCommand } from '../../installation.ts'
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

export interface PluginCommand extends ModuleCommand {
  /** Who must start it; absent: the server's own user. */
  readonly user?: Isolation['user']
  /** What is started has the plugin as its only child, and ends once nothing of the plugin's namespace is left. */
  readonly hasSpace: boolean
}

const DEFAULT_MEMORY_BYTES = 1024 * 1024 * 1024
const MIB = 1024 * 1024
/** `node:sqlite` opens any file, for writing, too: the permission model does not ask it. */
const NO_SQLITE = '--no-experimental-sqlite'
const PRLIMIT = '/usr/bin/prlimit'
const SETPRIV = '/usr/bin/setpriv'
const UNSHARE = '/usr/bin/unshare'
const WITH_PARENT = ['--pdeathsig', 'KILL']

/**
 * The command of a plugin. Where util-linux is there, the kernel ends the process together with the server, whatever ends that, and
 * denies it memory beyond the limit and new privileges. Not the address space is limited (RLIMIT_AS) but what is written to
 * (RLIMIT_DATA): Go and V8 reserve far more addresses than they use. Where the kernel permits a PID namespace, the plugin is the
 * first process of one, and all that it started ends with it (ADR 0052).
 */
export function commandOf(
  program: Program,
  { memoryBytes = DEFAULT_MEMORY_BYTES, user }: Isolation,
): PluginCommand {
  const prlimit = existsSync(PRLIMIT) ? [PRLIMIT, `--data=${memoryBytes}`, '--core=0', '--'] : []
  const { words, environment } = programOf(program, memoryBytes)
  const bare = { environment, user, hasSpace: false }
  if (!existsSync(SETPRIV)) return { words: [...prlimit, ...words], ...bare }
  const bounds = [SETPRIV, ...WITH_PARENT, '--no-new-privs']
  const space = pidSpace()
  if (space === undefined) return { words: [...bounds, '--', ...prlimit, ...words], ...bare }
  // Only root makes the namespace, so the other user begins inside it.
  const become =
    user === undefined ? [] : ['--reuid', `${user.uid}`, '--regid', `${user.gid}`, '--clear-groups']
  return {
    words: [SETPRIV, ...WITH_PARENT, '--', ...space, ...bounds, ...become, '--', ...prlimit, ...words],
    environment,
    hasSpace: true,
  }
}

let known: { readonly space: readonly string[] | undefined } | undefined

/** What starts a program in a PID namespace of its own; undefined where this machine does not permit it. Asked once. */
export function pidSpace(): readonly string[] | undefined {
  if (known !== undefined) return known.space
  const asUser = process.geteuid?.() === 0 ? [] : ['--user', '--map-current-user']
  const words = [...asUser, '--pid', '--fork', '--kill-child', '--']
  const works = existsSync(UNSHARE) && spawnSync(UNSHARE, [...words, SETPRIV, '--dump']).status === 0
  known = { space: works ? [UNSHARE, ...words] : undefined }
  return known.space
}

function programOf(program: Program, memoryBytes: number): ModuleCommand {
  if (program.runtime === 'executable') return { words: [program.entry], environment: {} }
  // Its own folder to read, nothing to write; no child processes, workers, addons, inspector.
  const flags = ['--permission', `--allow-fs-read=${program.folder}`, NO_SQLITE]
  const heap = `--max-old-space-size=${Math.max(32, Math.floor(memoryBytes / MIB / 2))}`
  return installation.moduleCommand([...flags, heap], program.entry)
}
