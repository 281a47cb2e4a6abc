import { existsSync, rmSync, statfsSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Room for ending credentials when the disk is full. More than a full journal (1,000 pages of 4 KiB and one large
 * commit), which must fit into the database file before it can be emptied.
 */
const RESERVE_BYTES = 8 * 1024 * 1024
/** Twice the reserve must be free before ordinary changes are accepted again: the journal needs room too. */
const REQUIRED_BYTES = 2 * RESERVE_BYTES

/** The file `ballast`, which takes up room and is given up when the disk is full. */
export class Reserve {
  readonly #directory: string
  readonly #path: string

  constructor(directory: string) {
    this.#directory = directory
    this.#path = join(directory, 'ballast')
  }

  /** Creates the file if it does not exist. Returns false when there is no room for it. */
  hold(): boolean {
    try {
      if (existsSync(this.#path) && statSync(this.#path).size === RESERVE_BYTES) return true
      const { bavail, bsize } = statfsSync(this.#directory)
      if (bavail * bsize < REQUIRED_BYTES) return false
      // Write all of it, because `statfs` does not know about quotas.
      writeFileSync(this.#path, Buffer.alloc(REQUIRED_BYTES), { mode: 0o600 })
      truncateSync(this.#path, RESERVE_BYTES)
      return true
    } catch {
      this.giveUp()
      return false
    }
  }

  giveUp(): void {
    rmSync(this.#path, { force: true })
  }
}
