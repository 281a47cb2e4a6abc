import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { World } from './support.ts'

const run = promisify(execFile)

export const HOST = ['--host', 'git.example.com', '--backend', 'demo']

/** The real git, as somebody at home in this world runs it there; its output without the last line break. */
export async function runGit(world: World, cwd: string, args: readonly string[]): Promise<string> {
  const env = { ...world.env, GIT_CONFIG_NOSYSTEM: '1' }
  return (await run('git', args, { cwd, env })).stdout.replace(/\n$/, '')
}

/** The directory of a new repository in this world. */
export async function newRepository(world: World): Promise<string> {
  const directory = await mkdtemp(join(world.home, 'repository-'))
  await runGit(world, directory, ['init', '-q'])
  return directory
}
