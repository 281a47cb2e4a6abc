import { chmodSync, closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { StoreRefused } from '../errors.ts'
import { migrate } from '../schema/migrate.ts'
import { BatchApplier } from './apply-batch.ts'
import { isBusy } from './errors.ts'

const MAX_STATEMENTS = 512

/** The open file and its prepared statements, which do not outlive it. */
export interface OpenFile {
  readonly db: DatabaseSync
  readonly applier: BatchApplier
}

/**
 * Keeps every other process out of `directory`, with a lock on a small database of its own. The operating system
 * releases it however this process ends. Returns the function that unlocks. Throws `StoreRefused`.
 */
export function lockDirectory(directory: string): () => void {
  const file = join(directory, 'mayfly.lock')
  closeSync(openSync(file, 'a', 0o600))
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; COMMIT')
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw error
    throw new StoreRefused(
      `another process is using ${directory}, and only one Mayfly can use a data directory. Stop the other process, or choose another directory`,
    )
  }
  return () => db.close()
}

/** Opens `file`, creating it if necessary, and migrates its schema. */
export async function openFile(file: string): Promise<OpenFile> {
  const opened = connect(file)
  const { db } = opened
  try {
    await migrate({
      dialect: 'sqlite',
      version: async () => Number(db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0),
      apply: async (statements, version) => {
        db.exec(`BEGIN IMMEDIATE; ${statements.join(';\n')}; PRAGMA user_version = ${version}; COMMIT`)
      },
    })
  } catch (error) {
    db.close()
    throw error
  }
  return opened
}

export function connect(file: string): OpenFile {
  // SQLite gives the journal the mode of the file, so make the file private before opening it.
  closeSync(openSync(file, 'a', 0o600))
  chmodSync(file, 0o600)
  const db = new DatabaseSync(file, { timeout: 1_000 })
  try {
    configure(db)
  } catch (error) {
    db.close()
    throw error
  }
  return { db, applier: new BatchApplier(db, cacheStatements(db)) }
}

function configure(db: DatabaseSync): void {
  // So that a prune can make the file smaller. Only a file without tables takes it; one with tables may be on a full disk.
  if (db.prepare('PRAGMA page_count').get()?.['page_count'] === 0) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('PRAGMA foreign_keys = ON; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY')
  // Erased values must not stay in free pages, which backups copy. FAST would leave them in pages that are freed whole.
  db.exec('PRAGMA secure_delete = ON')
  const mode = db.prepare('PRAGMA synchronous').get()?.['synchronous']
  const journal = db.prepare('PRAGMA journal_mode').get()?.['journal_mode']
  if (mode === 2 && journal === 'wal') return
  throw new StoreRefused(
    'SQLite did not accept journal_mode=WAL and synchronous=FULL. Put data_dir on a local file system that supports shared memory (not NFS or SMB)',
  )
}

/** `prepare` with a cache. */
export function cacheStatements(db: DatabaseSync): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>()
  return (sql) => {
    let prepared = statements.get(sql)
    if (prepared === undefined) {
      if (statements.size >= MAX_STATEMENTS) statements.clear()
      prepared = db.prepare(sql)
      statements.set(sql, prepared)
    }
    return prepared
  }
}

/** Free pages that stay in the file, because the next changes take them. */
const KEPT_PAGES = 256
/** More than one bulk change frees, and few enough that no request waits for long. */
const PAGES_AT_ONCE = 256

/** Gives some free pages back to the file system. Without `auto_vacuum`, SQLite does nothing here. */
export function giveBackPages(db: DatabaseSync): void {
  const free = Number(db.prepare('PRAGMA freelist_count').get()?.['freelist_count'])
  const spare = Math.min(free - KEPT_PAGES, PAGES_AT_ONCE)
  if (spare > 0) db.exec(`PRAGMA incremental_vacuum(${spare})`)
}

/**
 * Moves every acknowledged change into the database file, syncs it, and empties the journal. Required after a failed
 * commit: opening the file would otherwise replay that commit from the journal, and if a sync failed, the frames it
 * lost would take all later ones with them. Throws while the disk does not allow it.
 */
export function emptyJournal(db: DatabaseSync): void {
  const busy = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy']
  if (busy !== 0) throw new Error('a reader prevents the journal from being emptied')
}
