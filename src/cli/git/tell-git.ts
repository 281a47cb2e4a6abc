import { constants } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { type Failure, failureOf } from '../frame/failure.ts'
import { oneLine } from '../frame/output.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import { runGit } from './run-git.ts'

type Where = Pick<Surroundings, 'env' | 'cwd' | 'signal' | 'platform'>

/**
 * git before 2.41 keeps to itself what its gpg.program said and ends with "gpg failed to sign the data". There the
 * line is written to where git itself writes, as far as the system lets us.
 */
export async function tellOldGit(where: Where, error: unknown): Promise<void> {
  const failure = failureOf(error)
  if (where.platform !== 'linux' || failure.message === '') return
  try {
    const parent = `/proc/${process.ppid}`
    if ((await readFile(`${parent}/comm`, 'utf8')) !== 'git\n' || !(await isOldGit(where))) return
    // At the end of a file, and without waiting for who does not read; a socket cannot be opened at all.
    const { O_WRONLY, O_APPEND, O_NONBLOCK, O_NOCTTY } = constants
    const stderr = await open(`${parent}/fd/2`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY)
    try {
      await stderr.write(inWords(failure))
    } finally {
      await stderr.close()
    }
  } catch {
    // It is told on our own standard error in any case.
  }
}

const inWords = ({ message, hint }: Failure) =>
  `mayfly: ${oneLine([message, hint].filter(Boolean).join(' '))}\n`

async function isOldGit(where: Where): Promise<boolean> {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec((await runGit(where, ['--version'])).stdout) ?? []
  return Number(major) < 2 || (Number(major) === 2 && Number(minor) < 41)
}
