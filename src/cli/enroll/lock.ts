import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { tryLock } from '../session/file-lock.ts'
import { configPath } from '../session/paths.ts'

const SQLITE_FULL = 13

/** Only one process at a time enrolls for a profile. Throws `CliError` if another one holds the lock. */
export async function lockEnrollment(context: Context, profileName: string): Promise<() => void> {
  const path = configPath(context, 'secrets', `${profileName}.enrollment.lock`)
  const release = await tryLock(path).catch((error: unknown) => {
    if ((error as { errcode?: unknown }).errcode !== SQLITE_FULL) throw error
    throw new CliError('not_written', `${path} cannot be written: the disk is full.`, {
      hint: 'Nothing was changed.',
    })
  })
  if (release !== undefined) return release
  throw new CliError(
    'enrollment_waits',
    `Another \`mayfly enroll\` is running for the profile ${profileName}.`,
    { hint: 'Let it finish or stop it first. For another agent, choose another --profile.' },
  )
}
