import { CliError } from '../frame/failure.ts'
import { runProgram } from '../frame/run-program.ts'
import type { Surroundings } from '../frame/surroundings.ts'

type Where = Pick<Surroundings, 'env' | 'cwd' | 'signal'>

export interface GitEnded {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs git and returns its exit code and output. Throws `CliError` if git is not installed. */
export async function runGit({ env, cwd, signal }: Where, args: readonly string[]): Promise<GitEnded> {
  try {
    const ended = await runProgram('git', args, { env: { ...env, LC_ALL: 'C' }, cwd, signal })
    return { code: ended.code ?? 1, stdout: ended.output.toString(), stderr: ended.said }
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'ENOENT') throw cause
    throw new CliError('no_git', 'git is not in the PATH.', { hint: 'Install git.', cause })
  }
}
