import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { pause } from '../frame/pause.ts'

const SQLITE_BUSY = 5

/**
 * The lock of an empty database, which the system frees whatever becomes of the process. Returns what lets go of it;
 * undefined where another process, or another caller in this one, holds it. Throws what the file system says.
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

const LOCK_TRIES = 400
const LOCK_PAUSE_MS = 25

/** As `tryLock`, for ten seconds. Where there can be no lock it goes without. Rejects with the reason of the signal. */
export async function waitForLock(path: string, signal: AbortSignal): Promise<(() => void) | undefined> {
  for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
    const release = await tryLock(path).catch(() => () => {})
    if (release !== undefined) return release
    await pause(LOCK_PAUSE_MS, signal)
  }
  return undefined
}
