import { open } from 'node:fs/promises'
import { join } from 'node:path'

export interface Journal {
  /** Resolves when 4 KiB are on the disk. All that wait share the next write and its sync, as in a group commit. */
  write(): Promise<void>
  close(): Promise<void>
}

const BLOCK_BYTES = 4_096
const FILE_BLOCKS = 1_024

/** Overwrites a file in place, like the log of a database: the least that it costs to record something. */
export async function openJournal(directory: string): Promise<Journal> {
  const file = await open(join(directory, 'journal'), 'w', 0o600)
  await file.write(Buffer.alloc(BLOCK_BYTES * FILE_BLOCKS, 1))
  await file.sync()
  const block = Buffer.alloc(BLOCK_BYTES, 2)
  let at = 0
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<void> | undefined
  async function writeNext(): Promise<void> {
    next = undefined
    at = (at + 1) % FILE_BLOCKS
    const written = file.write(block, 0, BLOCK_BYTES, at * BLOCK_BYTES).then(() => file.datasync())
    last = written
    await written
  }
  return {
    write() {
      next ??= last.then(writeNext)
      return next
    },
    async close() {
      await last
      await file.close()
    },
  }
}
