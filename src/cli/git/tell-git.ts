import { constants } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { type Failure, failureOf } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { oneLine } from '../frame/terminal-text.ts'
import { runGit } from './run-git.ts'

type Where = Pick<Surroundings, 'env' | 'cwd' | 'signal' | 'platform'>

/**
 * git before 2.41 discards the output of its gpg.program and only says "gpg failed to sign the data". For those versions
 * we write the line to git's own standard error, if the system permits.
 */
export async function tellOldGit(where: Where, error: unknown): Promise<void> {
  const failure = failureOf(error)
  if (where.platform !== 'linux' || failure.message === '') return
  try {
    const parent = `/proc/${process.ppid}`
    if ((await readFile(`${parent}/comm`, 'utf8')) !== 'git\n' || !(await isOldGit(where))) return
    // Append to a file, and never block on a pipe without a reader. A socket cannot be opened this way.
    const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOCTTY } = constants
    const stderr = await open(`${parent}/fd/2`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY)
    try {
      await stderr.write(lineOf(failure))
    } finally {
      await stderr.close()
    }
  } catch {
    // Our own standard error has it in any case.
  }
}

const lineOf = ({ message, hint }: Failure) =>
  `mayfly: ${oneLine([message, hint].filter(Boolean).join(' '))}\n`

async function isOldGit(where: Where): Promise<boolean> {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec((await runGit(where, ['--version'])).stdout) ?? []
  return Number(major) < 2 || (Number(major) === 2 && Number(minor) < 41)
}
