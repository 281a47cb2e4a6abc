import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { StoreError } from '../errors.ts'
import { toReadError } from './errors.ts'
import { cacheStatements } from './file.ts'

type Cell = string | number | null

/**
 * Reads committed data on the caller's thread. Taking the locks of a read costs ten times the look-up itself, so
 * one read transaction serves all reads for as long as nothing can change: while no batch is with the writer. It
 * ends before the next batch is sent, so no read is stale and the journal can always be emptied.
 */
export class Reader {
  readonly #db: DatabaseSync
  readonly #statement: (sql: string) => StatementSync
  readonly #isQuiet: () => boolean
  #holding = false

  /** `isQuiet` says whether nothing can change now. */
  constructor(file: string, isQuiet: () => boolean) {
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
    this.#db.exec('PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY')
    this.#statement = cacheStatements(this.#db)
    this.#isQuiet = isQuiet
  }

  read<R>(sql: string, params: readonly Cell[]): R[] {
    if (!this.#db.isOpen) throw new StoreError('the store is closed')
    try {
      if (!this.#holding && this.#isQuiet()) {
        this.#db.exec('BEGIN')
        this.#holding = true
      }
      return this.#statement(sql).all(...params) as R[]
    } catch (error) {
      this.release()
      throw toReadError(error)
    }
  }

  /** Ends the read transaction: the next read sees the newest data. */
  release(): void {
    if (!this.#holding) return
    this.#holding = false
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}
