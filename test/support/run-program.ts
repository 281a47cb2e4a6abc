import { execFileSync, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

export interface ProgramEnd {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A foreign program, with `stdin` or nothing on standard input. */
export async function run(
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
  options: { stdin?: string; cwd?: string } = {},
): Promise<ProgramEnd> {
  const child = spawn(program, args, { env, ...(options.cwd === undefined ? {} : { cwd: options.cwd }) })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve)
    child.once('error', reject)
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.stdin ?? '')
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}

/** Whether there is such a program here. */
export function isInstalled(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
