import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { migrate } from '../schema/migrate.ts'
import { type Applier, createApplier } from './commit.ts'
import { isBusy } from './errors.ts'

const MAX_STATEMENTS = 512
/**
 * Room to end credentials in when the disk is full. More than a full journal (1000 pages of 4 KiB and one large
 * commit), which must fit into the database file before it can be emptied.
 */
const BALLAST_BYTES = 8 * 1024 * 1024
/** Twice the reserve must fit before anything but ending is done again: the journal needs room too. */
const PROOF_BYTES = 2 * BALLAST_BYTES

/** The open file with its prepared statements, which die with it. */
export interface OpenFile {
  readonly db: DatabaseSync
  statement(sql: string): StatementSync
  readonly applier: Applier
}

/**
 * One process at a time: the lock of a small database of its own, which the system frees whatever becomes of the
 * process. Returns what lets go of it. Throws where another process holds it.
 */
export function lockDirectory(directory: string): () => void {
  const file = join(directory, 'mayfly.lock')
  closeSync(openSync(file, 'a', 0o600))
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE; COMMIT')
  } catch (error) {
    db.close()
    if (isBusy(error))
      throw new Error(`another process holds ${directory}: only one Mayfly may use a data directory`)
    throw error
  }
  return () => db.close()
}

/** Opens `file` and brings its schema up to date. */
export async function openFile(file: string): Promise<OpenFile> {
  const opened = connect(file)
  try {
    await migrate({
      dialect: 'sqlite',
      version: async () => Number(opened.db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0),
      apply: async (statements, version) => {
        opened.db.exec(`BEGIN IMMEDIATE; ${statements.join(';\n')}; PRAGMA user_version = ${version}; COMMIT`)
      },
    })
  } catch (error) {
    opened.db.close()
    throw error
  }
  return opened
}

export function connect(file: string): OpenFile {
  // The journal takes its mode from the file, so the file must be private before SQLite opens it.
  closeSync(openSync(file, 'a', 0o600))
  chmodSync(file, 0o600)
  const db = new DatabaseSync(file, { timeout: 1_000 })
  try {
    setUp(db)
  } catch (error) {
    db.close()
    throw error
  }
  const statement = cacheStatements(db)
  let applier: Applier | undefined
  return {
    db,
    statement,
    /** Made at first use: it prepares statements on tables that a new file does not have yet. */
    get applier() {
      applier ??= createApplier(statement)
      return applier
    },
  }
}

function setUp(db: DatabaseSync): void {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec('PRAGMA foreign_keys = ON; PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY')
  const mode = db.prepare('PRAGMA synchronous').get()?.['synchronous']
  const journal = db.prepare('PRAGMA journal_mode').get()?.['journal_mode']
  if (mode !== 2 || journal !== 'wal')
    throw new Error('SQLite did not accept journal_mode=WAL and synchronous=FULL')
}

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

/**
 * After a failed commit: brings what was acknowledged into the database file, synced, and empties the journal.
 * Frames of the failed commit would else come back to life when the file is opened, and frames whose sync
 * failed could be lost later together with all that follows them. Throws while the disk does not allow it.
 */
export function emptyJournal(db: DatabaseSync): void {
  const busy = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy']
  if (busy !== 0) throw new Error('the journal could not be emptied')
}

/** A file that takes room, to be given up when the disk is full. */
export interface Ballast {
  /** False when there is no room for it. */
  lay(): boolean
  drop(): void
}

export function createBallast(directory: string): Ballast {
  const path = join(directory, 'ballast')
  const drop = () => rmSync(path, { force: true })
  return {
    drop,
    lay() {
      try {
        if (existsSync(path) && statSync(path).size === BALLAST_BYTES) return true
        const { bavail, bsize } = statfsSync(directory)
        if (bavail * bsize < PROOF_BYTES) return false
        // Written to the full, because a quota does not show in what the file system says.
        writeFileSync(path, Buffer.alloc(PROOF_BYTES), { mode: 0o600 })
        truncateSync(path, BALLAST_BYTES)
        return true
      } catch {
        drop()
        return false
      }
    },
  }
}
