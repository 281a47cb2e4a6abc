import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { pause } from '../../client/abort.ts'
import { CliError } from '../frame/failure.ts'

const SQLITE_BUSY = 5

/**
 * Locks an empty SQLite database, which the system unlocks however the process ends. Returns the function that
 * releases it; undefined if another process or caller holds it. Throws errors of the file system.
 */
export async function tryLock(path: string): Promise<(() => void) | undefined> {
  const { DatabaseSync } = await import('node:sqlite')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; COMMIT')
    return () => database.close()
  } catch (error) {
    database.close()
    if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) return undefined
    throw error
  }
}

const LOCK_TRIES = 1_200
const LOCK_PAUSE_MS = 25

/** Tries for thirty seconds, the time that a request may take. Goes on without a lock if there can be none. Rejects with the reason of the signal. */
export async function waitForLock(path: string, signal: AbortSignal): Promise<(() => void) | undefined> {
  for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
    const release = await tryLock(path).catch(() => () => {})
    if (release !== undefined) return release
    await pause(LOCK_PAUSE_MS, signal)
  }
  return undefined
}

/** Runs a change of this file alone. Throws `CliError` if another process holds the lock and does not finish. */
export async function changeAlone<T>(
  { file, lock = `${file}.lock` }: { readonly file: string; readonly lock?: string },
  signal: AbortSignal,
  change: () => Promise<T>,
): Promise<T> {
  const release = await waitForLock(lock, signal)
  if (release === undefined)
    throw new CliError('file_busy', `Another mayfly process is changing ${file} and does not finish.`, {
      hint: 'Answer its question or stop it, then try again.',
    })
  try {
    return await change()
  } finally {
    release()
  }
}
