import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Change, Outcome, Step } from '../engine/change.ts'
import { createClock } from '../engine/clock.ts'
import { columnNames, type Table } from '../schema/columns.ts'
import { isFaultOfStatement, isUniqueViolation } from './errors.ts'

type Cell = string | number | null
type Insert = Extract<Step, { op: 'insert' }>
type Guard = Extract<Step, { op: 'guard' }>
type Token = Extract<Step, { op: 'token' }>

const now = createClock()

const LOOK_UP = {
  agents: 'SELECT 1 FROM agents WHERE id = ? AND version = ? AND ended_at IS NULL',
  backends: 'SELECT 1 FROM backends WHERE uid = ? AND version = ? AND ended_at IS NULL',
  runs: 'SELECT 1 FROM runs WHERE id = ? AND version = ? AND ended_at IS NULL',
}

const TOKEN = `SELECT 1 FROM issuer_keys WHERE kid = ? AND (retires_at IS NULL OR retires_at > ?)
  AND EXISTS (SELECT 1 FROM agents WHERE id = ? AND ended_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM revoked_tokens WHERE jti = ?)`

/** An `Error`: the database can never execute this change, whatever rows it holds. */
export type Attempt = Outcome | Error

/**
 * Commits a batch of changes in one transaction with one sync. A refused change spoils no other: if it had written
 * before it was refused, the batch is rolled back and applied again with a savepoint for each change. Savepoints
 * from the start would make every batch a fifth slower, and few changes are refused after they have written.
 */
export class BatchApplier {
  readonly #db: DatabaseSync
  readonly #statement: (sql: string) => StatementSync
  readonly #inserts = new Map<Table, { columns: readonly string[]; prepared: StatementSync }>()
  /** Guards that hold in the open transaction, so that a batch looks up each agent and backend once. */
  readonly #held = new Set<string>()
  /** Whether the last change wrote anything. */
  #wrote = false

  constructor(db: DatabaseSync, statement: (sql: string) => StatementSync) {
    this.#db = db
    this.#statement = statement
  }

  /** Throws when the transaction cannot be committed: then this connection sees none of it. */
  commit(changes: readonly Change[]): Attempt[] {
    return this.#transaction(changes, false) ?? this.#transaction(changes, true) ?? []
  }

  /** Without savepoints: undefined, and rolled back, if a change was refused after it had written. */
  #transaction(changes: readonly Change[], withSavepoints: boolean): Attempt[] | undefined {
    this.#db.exec('BEGIN IMMEDIATE')
    this.#held.clear()
    try {
      const attempts: Attempt[] = []
      for (const change of changes) {
        if (withSavepoints) this.#db.exec('SAVEPOINT change')
        const attempt = this.#apply(change)
        if (this.#wrote && (attempt instanceof Error || !attempt.done)) {
          this.#db.exec(withSavepoints ? 'ROLLBACK TO change' : 'ROLLBACK')
          if (!withSavepoints) return undefined
          // A guard may have held only because of what was just rolled back.
          this.#held.clear()
        }
        if (withSavepoints) this.#db.exec('RELEASE change')
        attempts.push(attempt)
      }
      this.#db.exec('COMMIT')
      return attempts
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  /** Rethrows errors of the disk and the file, which are no fault of the change. */
  #apply(change: Change): Attempt {
    this.#wrote = false
    for (const [index, step] of change.entries()) {
      try {
        const reason = this.#run(step)
        if (reason !== undefined) return { done: false, step: index, reason }
      } catch (error) {
        if (isUniqueViolation(error)) return { done: false, step: index, reason: 'unique' }
        if (error instanceof Error && isFaultOfStatement(error)) return error
        throw error
      }
    }
    return { done: true }
  }

  #run(step: Step): 'guard' | 'rows' | undefined {
    switch (step.op) {
      case 'guard':
        return this.#holds(step) ? undefined : 'guard'
      case 'token':
        return this.#isValid(step) ? undefined : 'guard'
      case 'insert':
        return this.#insert(step)
      case 'run': {
        this.#held.clear()
        const changed = Number(this.#statement(step.sql).run(...step.params).changes)
        if (changed > 0) this.#wrote = true
        return step.rows === 'any' || step.rows === changed ? undefined : 'rows'
      }
      case 'invalidate':
        return undefined
      default: {
        const never: never = step
        return never
      }
    }
  }

  #holds({ table, id, version }: Guard): boolean {
    const key = `${id}@${version}`
    if (this.#held.has(key)) return true
    if (this.#statement(LOOK_UP[table]).get(id, version) === undefined) return false
    this.#held.add(key)
    return true
  }

  #isValid({ jti, kid, agentId, expiresAt }: Token): boolean {
    const at = now()
    return expiresAt > at && this.#statement(TOKEN).get(kid, at, agentId, jti) !== undefined
  }

  #insert({ table, row }: Insert): undefined {
    let insert = this.#inserts.get(table)
    if (insert === undefined) {
      const columns = columnNames(table)
      const values = columns.map(() => '?').join(', ')
      const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${values})`
      insert = { columns, prepared: this.#db.prepare(sql) }
      this.#inserts.set(table, insert)
    }
    const cells: Record<string, Cell> = row
    insert.prepared.run(...insert.columns.map((column) => cells[column] ?? null))
    this.#wrote = true
  }

  /** SQLite has often rolled back already. A failure here must not hide why the batch failed. */
  #rollBack(): void {
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    } catch {
      // The file is reopened next, which closes the transaction.
    }
  }
}
