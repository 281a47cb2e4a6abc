import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import type { RedactedStream, Redaction } from './redact.ts'

export interface ChildOptions {
  /** As typed; the program sees it as its own name. */
  readonly command: string
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** When set, output passes through us; otherwise the child inherits our streams and terminal. */
  readonly redaction?: Redaction | undefined
  /** Read only for a redaction: opening a stream takes time. */
  readonly streams: { readonly stdout: Writable; readonly stderr: Writable }
}

export interface Child {
  readonly pid: number
  /** False when the process has already exited. */
  kill(signal: NodeJS.Signals): boolean
  /** The exit code as a shell reports it. Resolves when the process exits, even if others hold its output open. */
  readonly ended: Promise<number>
  /** All output has been passed on. Settles shortly after the exit even if others hold the output open. */
  readonly drained: Promise<unknown>
}

/** More than a pipe holds: anything beyond it was written by processes the child left running. */
const LATE_BYTES = 2 * 1024 * 1024
/** How long to wait for more output after the child's exit. */
const LATE_MS = 500

/** Rejects with the system error when the command cannot be started. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { command, file, args, cwd, env, redaction } = options
  const out = redaction === undefined ? 'inherit' : 'pipe'
  const child = spawn(file, [...args], { argv0: command, cwd, env: { ...env }, stdio: ['inherit', out, out] })
  const exit = Promise.withResolvers<number>()
  child.once('exit', (code, signal) =>
    exit.resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]),
  )
  // Resolves once the child runs, rejects on `error`.
  await once(child, 'spawn')
  child.on('error', () => {})
  return {
    pid: child.pid ?? 0,
    kill: (signal) => child.kill(signal),
    ended: exit.promise,
    drained: Promise.all(pumps(child, options, exit.promise)),
  }
}

function pumps(
  child: ChildProcess,
  { redaction, streams }: ChildOptions,
  ended: Promise<unknown>,
): Promise<void>[] {
  const { stdout: out, stderr: err } = child
  if (redaction === undefined || out === null || err === null) return []
  return [
    pump(out, redaction.stream(), streams.stdout, ended),
    pump(err, redaction.stream(), streams.stderr, ended),
  ]
}

async function pump(
  source: Readable,
  redacted: RedactedStream,
  target: Writable,
  ended: Promise<unknown>,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  let late = 0
  const wait = () => {
    clearTimeout(timer)
    if (isOver) timer = setTimeout(() => source.destroy(), LATE_MS)
  }
  void ended.then(() => {
    isOver = true
    wait()
  })
  // The reader of our output is gone: close the pipe, so the child notices as it would without us.
  target.once('error', () => source.destroy())
  try {
    for await (const chunk of source) {
      clearTimeout(timer)
      if (isOver) late += (chunk as Buffer).length
      if (late > LATE_BYTES) break
      if (!target.write(redacted.push(chunk as Buffer)) && !target.destroyed) await once(target, 'drain')
      wait()
    }
  } catch {
    // Destroyed by us, or broken: everything read so far has been passed on.
  } finally {
    clearTimeout(timer)
  }
  if (!target.destroyed) target.write(redacted.end())
}
