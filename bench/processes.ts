import { type ChildProcess, fork, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type Undo = () => void | Promise<void>

/** Cleanup steps, run in reverse order. */
const undos: Undo[] = []
let undoing: Promise<void> | undefined

export function onExit(undo: Undo): void {
  undos.push(undo)
}

export function cleanUp(): Promise<void> {
  undoing ??= (async () => {
    for (let undo = undos.pop(); undo !== undefined; undo = undos.pop()) {
      try {
        await undo()
      } catch (error) {
        console.error('cleaning up failed:', error)
      }
    }
    undoing = undefined
  })()
  return undoing
}

/** Cleans up and exits on Ctrl-C and similar signals. */
export function cleanUpOnSignals(): void {
  for (const [signal, number] of [
    ['SIGINT', 2],
    ['SIGTERM', 15],
    ['SIGHUP', 1],
  ] as const) {
    process.on(signal, () => {
      void cleanUp().finally(() => process.exit(128 + number))
    })
  }
}

/** A directory that `cleanUp` removes. */
export function temporaryDirectory(parent: string | undefined): string {
  const path = mkdtempSync(join(parent ?? tmpdir(), `mayfly-bench-${process.pid}-`))
  onExit(() => rmSync(path, { recursive: true, force: true }))
  return path
}

/** The environment without Mayfly's variables, and without one that slows the start of Node. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const ours = (name: string) => name.startsWith('MAYFLY_') || name === 'NODE_EXTRA_CA_CERTS'
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours(name)))
}

/** Runs a TypeScript file of this folder as a child process with an IPC channel. */
export function forkHere(file: string, nodeArgs: readonly string[] = []): ChildProcess {
  return stopAtEnd(
    fork(join(import.meta.dirname, file), {
      env: plainEnvironment(),
      execArgv: [...nodeArgs],
      stdio: ['ignore', 2, 2, 'ipc'],
    }),
  )
}

/** `before` is a command that runs Node, such as `nice`. */
export function spawnNode(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  before: readonly string[] = [],
): ChildProcess {
  const [program = '', ...words] = [...before, process.execPath, ...args]
  // In its own process group, so that Ctrl-C reaches it only once, through us.
  const child = spawn(program, words, {
    env: { ...plainEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 2],
    detached: true,
  })
  return stopAtEnd(child)
}

export function stopAtEnd(child: ChildProcess): ChildProcess {
  onExit(() => stop(child))
  return child
}

/** Sends SIGTERM, and SIGKILL after 10 s. Resolves when the process has exited. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const force = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(force)
}

export interface Usage {
  /** User and system time since the start, in s. */
  readonly cpuSeconds: number
  readonly rssMb: number
}

/** Linux reports CPU time in 1/100 s, independent of the kernel's tick. */
const TICKS = 100

/** Undefined for an ended process, or without /proc. */
export function usageOf(pid: number | undefined): Usage | undefined {
  if (pid === undefined) return undefined
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name, in parentheses, may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const rss = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return {
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS,
      rssMb: Number(rss ?? Number.NaN) / 1_024,
    }
  } catch {
    return undefined
  }
}
