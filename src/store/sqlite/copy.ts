import { backup, DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../errors.ts'
import { COLUMNS, columnNames, type Table } from '../schema/columns.ts'
import { MIGRATIONS, SCHEMA_VERSION } from '../schema/migrate.ts'
import { isDamaged } from './errors.ts'
import { openFile } from './file.ts'

const PAGES_AT_ONCE = 1_000
const BUSY_MS = 10_000
const ROWS_AT_ONCE = 500

/** The description that a copy of a store contains. */
export interface CopyFacts {
  readonly agents: number
  /** The key check of the master keys that sealed it. */
  readonly keyCheck: string
  /** Sealed: the oldest value, which no server starts without. */
  readonly hashKey: string
}

/** Opens a store that a server may be using, for a copy of its state at this moment. */
export function openForCopy(source: string): DatabaseSync {
  const db = new DatabaseSync(source, { readOnly: true, timeout: BUSY_MS })
  try {
    // One read transaction for all steps. Without it, SQLite begins the copy again after each change of the server.
    db.exec('BEGIN; SELECT count(*) FROM sqlite_schema')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Copies it into the empty file `target`, and closes it. `onProgress` gets the share that is done, from 0 to 1. */
export async function copyStore(
  db: DatabaseSync,
  target: string,
  onProgress: (share: number) => void,
): Promise<void> {
  try {
    await backup(db, target, {
      rate: PAGES_AT_ONCE,
      progress: ({ totalPages, remainingPages }) => onProgress(1 - remainingPages / Math.max(totalPages, 1)),
    })
  } finally {
    db.close()
  }
}

/**
 * Opens a copy, makes it one file without a journal, and checks every page. `name` is what the user calls it. Throws
 * `StoreRefused` for a file that is damaged, of a newer Mayfly, or no copy of a store.
 */
export function checkCopy(file: string, name: string): CopyFacts {
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  const value = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0]
  try {
    const version = Number(value('PRAGMA user_version'))
    if (version === 0) throw new StoreRefused(`${name} is not a backup of a Mayfly store`)
    if (version > SCHEMA_VERSION)
      throw new StoreRefused(
        `${name} has schema ${version}, this Mayfly knows ${SCHEMA_VERSION}: use the newer Mayfly that made it`,
      )
    db.exec('PRAGMA journal_mode = DELETE')
    const fault = value('PRAGMA integrity_check(1)')
    if (fault !== 'ok') throw new StoreRefused(damaged(name, String(fault)))
    const keyCheck = value("SELECT value FROM meta WHERE key = 'key_check'")
    const hashKey = value("SELECT value FROM meta WHERE key = 'hash_key'")
    if (typeof keyCheck !== 'string' || typeof hashKey !== 'string')
      throw new StoreRefused(`${name} is of a server that never started`)
    return { keyCheck, hashKey, agents: Number(value('SELECT count(*) FROM agents WHERE ended_at IS NULL')) }
  } catch (error) {
    if (!isDamaged(error)) throw error
    throw new StoreRefused(damaged(name, error instanceof Error ? error.message : String(error)))
  } finally {
    db.close()
  }
}

/**
 * Refuses a checked copy with more than its migrations make, or less: a trigger or a view would act in the server that takes
 * the file over. It compares names and columns, because the text that SQLite keeps is its own. Throws `StoreRefused`.
 */
export function requireOwnSchema(file: string, name: string): void {
  const [copy, made] = [new DatabaseSync(file, { readOnly: true }), new DatabaseSync(':memory:')]
  try {
    const version = Number(copy.prepare('PRAGMA user_version').get()?.['user_version'])
    for (const { statements } of MIGRATIONS.slice(0, version)) made.exec(statements('sqlite').join(';\n'))
    const [own, expected] = [schemaOf(copy), schemaOf(made)]
    const other = own.find((line) => !expected.includes(line)) ?? expected.find((line) => !own.includes(line))
    if (other !== undefined)
      throw new StoreRefused(
        `${name} has another schema than a Mayfly store, so somebody has changed it (${other.slice(0, 80)}). Use another backup`,
      )
  } finally {
    copy.close()
    made.close()
  }
}

/** The logins of people: a copy brings back none, nor a link or an invitation that was used or withdrawn since. */
const LOGINS = ['sessions', 'login_links', 'challenges', 'command_logins'] as const satisfies readonly Table[]

/** Ends the logins in a checked copy. An older schema has no such tables. */
export function endLogins(file: string): void {
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  try {
    const found = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
    for (const table of LOGINS) if (found.get(table) !== undefined) db.exec(`DELETE FROM ${table}`)
  } finally {
    db.close()
  }
}

/** SQLite's own objects hold no code. */
const schemaOf = (db: DatabaseSync): string[] =>
  db
    .prepare(
      `SELECT m.type || ' ' || m.name || ' of ' || m.tbl_name || coalesce(': ' || group_concat(
         c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || c.pk || ' ' || c.hidden || ' ' || coalesce(c.dflt_value, ''), ', '), '') AS line
       FROM sqlite_schema m LEFT JOIN pragma_table_xinfo(m.name) c ON m.type = 'table'
       WHERE m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' GROUP BY m.type, m.name, m.tbl_name`,
    )
    .all()
    .map((row) => String(row['line']))

const damaged = (name: string, why: string) =>
  `${name} is damaged or is not a SQLite database (${why}). Use another backup`

/** Some rows of one table. */
export interface TableRows {
  readonly table: Table
  readonly rows: readonly Record<string, unknown>[]
}

/** All rows of a copy, table by table, in the newest schema, to which the copy is brought first. */
export async function* readCopy(file: string): AsyncGenerator<TableRows> {
  const { db } = await openFile(file)
  try {
    for (const table of Object.keys(COLUMNS) as Table[]) {
      let rows: Record<string, unknown>[] = []
      for (const row of db.prepare(`SELECT ${columnNames(table).join(', ')} FROM ${table}`).iterate()) {
        rows.push(row)
        if (rows.length < ROWS_AT_ONCE) continue
        yield { table, rows }
        rows = []
      }
      if (rows.length > 0) yield { table, rows }
    }
  } finally {
    db.close()
  }
}
