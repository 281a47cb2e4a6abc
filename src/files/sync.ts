import type { Stats } from 'node:fs'
import { open } from 'node:fs/promises'

/** Brings a file, or the names in a directory, to the disk. */
export async function sync(path: string): Promise<Stats> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
    return await handle.stat()
  } finally {
    await handle.close()
  }
}
