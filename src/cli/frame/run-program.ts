import { spawn } from 'node:child_process'

export interface Run {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly cwd?: string
  /** For standard input, which is empty without. */
  readonly input?: string
  readonly timeout?: number
  readonly uid?: number
  readonly gid?: number
  /** A program that writes more to standard output is killed. */
  readonly mostBytes?: number
}

export interface Ended {
  /** Null if a signal ended it. */
  readonly code: number | null
  readonly output: Buffer
  /** The end of what it wrote to standard error. */
  readonly said: string
}

const MOST_SAID = 65_536

/** Runs a program until it ends. Throws the error of the system if it cannot be started. */
export function runProgram(program: string, argv: readonly string[], run: Run): Promise<Ended> {
  const { input, mostBytes = Number.POSITIVE_INFINITY, env, ...options } = run
  const { promise, resolve, reject } = Promise.withResolvers<Ended>()
  const stdin = input === undefined ? 'ignore' : 'pipe'
  const child = spawn(program, argv, { ...options, env: { ...env }, stdio: [stdin, 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  let size = 0
  let said = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= mostBytes) chunks.push(chunk)
    else child.kill('SIGKILL')
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-MOST_SAID)
  })
  child.on('error', reject)
  child.on('close', (code) => resolve({ code, output: Buffer.concat(chunks), said }))
  // If the program closes its input early, its exit code tells.
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
  return promise
}
