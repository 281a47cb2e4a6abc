import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import type { RedactedStream, Redaction } from './redact.ts'

export interface ChildWish {
  /** As it was typed: what the program sees as its name. */
  readonly command: string
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** With it the output goes through us; without, the child has our streams, and our terminal. */
  readonly redaction?: Redaction | undefined
  readonly stdout: Writable
  readonly stderr: Writable
}

export interface Child {
  readonly pid: number
  /** False when it has ended. */
  kill(signal: NodeJS.Signals): boolean
  /** The exit code as shells have it. Resolves when the process has ended, whoever still holds its output. */
  readonly ended: Promise<number>
  /** When all of its output has been passed on; at most a moment after its end when others hold it open. */
  readonly drained: Promise<unknown>
}

/** More than pipes hold: what comes after that is of what the child has left running. */
const AFTERGLOW_BYTES = 2 * 1024 * 1024
/** How long output is waited for that comes after the end, from what the child has left running. */
const AFTERGLOW_MS = 500

/** Rejects with what the system says when it cannot be started. */
export async function startChild(wish: ChildWish): Promise<Child> {
  const { command, file, args, cwd, env, redaction } = wish
  const out = redaction === undefined ? 'inherit' : 'pipe'
  const child = spawn(file, [...args], { argv0: command, cwd, env: { ...env }, stdio: ['inherit', out, out] })
  const exit = Promise.withResolvers<number>()
  child.once('exit', (code, signal) =>
    exit.resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]),
  )
  // Resolves after the start or rejects with `error`.
  await once(child, 'spawn')
  child.on('error', () => {})
  return {
    pid: child.pid ?? 0,
    kill: (signal) => child.kill(signal),
    ended: exit.promise,
    drained: Promise.all(pumps(child, wish, exit.promise)),
  }
}

function pumps(
  child: ChildProcess,
  { redaction, stdout, stderr }: ChildWish,
  ended: Promise<unknown>,
): Promise<void>[] {
  const { stdout: out, stderr: err } = child
  if (redaction === undefined || out === null || err === null) return []
  return [pump(out, redaction.stream(), stdout, ended), pump(err, redaction.stream(), stderr, ended)]
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
    if (isOver) timer = setTimeout(() => source.destroy(), AFTERGLOW_MS)
  }
  void ended.then(() => {
    isOver = true
    wait()
  })
  // Whoever read our output is gone: the child is told as it would be without us, by a closed pipe.
  target.once('error', () => source.destroy())
  try {
    for await (const chunk of source) {
      clearTimeout(timer)
      if (isOver) late += (chunk as Buffer).length
      if (late > AFTERGLOW_BYTES) break
      if (!target.write(redacted.push(chunk as Buffer)) && !target.destroyed) await once(target, 'drain')
      wait()
    }
  } catch {
    // Destroyed by us, or broken: what there was has been passed on.
  } finally {
    clearTimeout(timer)
  }
  if (!target.destroyed) target.write(redacted.end())
}
