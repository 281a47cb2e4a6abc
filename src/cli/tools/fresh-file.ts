import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { endOf, type HeldCredential } from '../session/held-credential.ts'
import { removeFile, writePrivateFile } from '../session/private-file.ts'
import type { Supply } from './fresh-supply.ts'

/** `setTimeout` fires at once for more than this. */
const MAX_WAIT_MS = 2 ** 31 - 1
const RETRY_MS = 5_000
/** The shortest pause, even for credentials that live only seconds. */
const LEAST_WAIT_MS = 500

export interface FreshFile {
  /** Stops renewing and deletes the file. */
  close(): Promise<void>
}

/**
 * Writes a secret to a file of mode 0600 and replaces it atomically before it expires. Resolves once the file exists;
 * throws when the first secret cannot be issued or written. Reports later failures once and retries.
 */
export async function keepFresh(
  context: Context,
  path: string,
  supply: Supply,
  secretOf: (credential: HeldCredential) => string,
  renewBeforeMs: number,
): Promise<FreshFile> {
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let isFailing = false
  let running: Promise<void> = Promise.resolve()
  const write = async (): Promise<number> => {
    const credential = await supply()
    await writePrivateFile(path, secretOf(credential))
    const end = endOf(credential)
    const life = end - Date.parse(credential.created_at)
    return end - context.now() - Math.min(renewBeforeMs, life / 4)
  }
  const renew = async (): Promise<void> => {
    try {
      const dueMs = await write()
      if (isFailing && dueMs > 0) context.out.note(`mayfly: renewed ${path}.`)
      if (dueMs > 0) isFailing = false
      schedule(dueMs > 0 ? dueMs : RETRY_MS)
    } catch (error) {
      if (!isFailing && !isClosed) {
        const why = error instanceof Error ? error.message.split('\n')[0] : ''
        context.out.note(`mayfly: cannot renew ${path}, retrying: ${why}`)
      }
      isFailing = true
      schedule(RETRY_MS)
    }
  }
  const schedule = (dueMs: number): void => {
    if (isClosed) return
    timer = setTimeout(
      () => {
        running = renew()
      },
      Math.min(Math.max(dueMs, LEAST_WAIT_MS), MAX_WAIT_MS),
    )
  }
  schedule(await write())
  return {
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      await running
      await removeFile(path).catch((cause: unknown) => {
        throw new CliError('not_removed', `Cannot remove ${path}.`, { cause })
      })
    },
  }
}
