import { spawn } from 'node:child_process'
import { CliError } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'

type Where = Pick<Surroundings, 'env' | 'cwd' | 'signal'>

export interface GitEnded {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs git and returns its exit code and output. Throws `CliError` if git is not installed. */
export function runGit(where: Where, args: readonly string[]): Promise<GitEnded> {
  const { promise, resolve, reject } = Promise.withResolvers<GitEnded>()
  const child = spawn('git', args, {
    cwd: where.cwd,
    env: { ...where.env, LC_ALL: 'C' },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: where.signal,
  })
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
  child.on('error', (cause) => {
    const isAbsent = (cause as { code?: unknown }).code === 'ENOENT'
    reject(
      isAbsent ? new CliError('no_git', 'git is not in the PATH.', { hint: 'Install git.', cause }) : cause,
    )
  })
  child.on('close', (code) =>
    resolve({
      code: code ?? 1,
      stdout: Buffer.concat(out).toString(),
      stderr: Buffer.concat(err).toString(),
    }),
  )
  return promise
}
