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
      const facts = await stderr.stat()
      const room = facts.isFile() ? roomFor(await readFile(`${parent}/fdinfo/2`, 'utf8'), facts.size) : ''
      // One write, so that nothing comes between.
      await stderr.write(room + lineOf(failure))
    } finally {
      await stderr.close()
    }
  } catch {
    // Our own standard error has it in any case.
  }
}

/** More than git writes after its gpg.program has failed, in any language. */
const ROOM_BYTES = 400

/**
 * A file that git did not open for appending, as after `2>file` in a shell: git writes its next lines at its own place in the file,
 * over what we append. Blanks and a line break give it room for them.
 */
function roomFor(fdinfo: string, size: number): string {
  const [, position] = /^pos:\s*(\d+)$/m.exec(fdinfo) ?? []
  const [, flags] = /^flags:\s*([0-7]+)$/m.exec(fdinfo) ?? []
  const isAppending = (Number.parseInt(flags ?? '0', 8) & constants.O_APPEND) !== 0
  const room = Number(position ?? size) + ROOM_BYTES - size
  return isAppending || room <= 0 ? '' : `${' '.repeat(room - 1)}\n`
}

const lineOf = ({ message, hint }: Failure) =>
  `mayfly: ${oneLine([message, hint].filter(Boolean).join(' '))}\n`

async function isOldGit(where: Where): Promise<boolean> {
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec((await runGit(where, ['--version'])).stdout) ?? []
  return Number(major) < 2 || (Number(major) === 2 && Number(minor) < 41)
}
