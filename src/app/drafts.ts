import { randomBytes } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../log/log.ts'
import { isAbandoned } from '../plugins/process/place.ts'

/** Ends the name of a file that is being written, and carries the process that writes it. */
const mark = () => `${process.pid}-${randomBytes(6).toString('hex')}`

/** Of a backup, beside the file that it becomes. */
export const backupDraft = (file: string) => `${file}.${mark()}.part`

/** Of a restore, in the data directory. */
export const restoreDraft = (dataDir: string) => join(dataDir, `restore-${mark()}.db`)

const DRAFT = /^(?:.+\.(\d+)-[0-9a-f]{12}\.part|restore-(\d+)-[0-9a-f]{12}\.db)(?:-journal|-wal|-shm)?$/

/** Removes the drafts of processes that were killed before they could do it. */
export async function removeDrafts(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const [, ofBackup, ofRestore] = DRAFT.exec(name) ?? []
    const pid = Number(ofBackup ?? ofRestore ?? Number.NaN)
    const path = join(directory, name)
    if (!Number.isNaN(pid) && (await isAbandoned(path, pid, 'file'))) await rm(path, { force: true })
  }
}

/** At the start: no fault of it stands in the way. */
export async function cleanUp(dataDir: string, log: Log): Promise<void> {
  await removeDrafts(dataDir).catch((error: unknown) =>
    log.warn({ err: error }, 'what a killed backup or restore left in the data directory was not removed'),
  )
}
