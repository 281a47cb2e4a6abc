import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Change, Outcome, Step } from '../engine/change.ts'
import { columnNames } from '../schema/columns.ts'
import type { Table } from '../schema/rows.ts'
import { isFaultOfChange, isUniqueViolation } from './errors.ts'

type Cell = string | number | null
/** An `Error`: this change cannot be executed at all, whatever the state of the world. */
export type Attempt = Outcome | Error

/** Runs one change inside the transaction that is open. */
export interface Applier {
  /** At the start of each transaction. */
  begin(): void
  /** Throws what is not the change's own fault: the disk's, the file's. */
  apply(change: Change): Attempt
  /** Whether the last change that was not done had written before, so that the transaction is spoilt. */
  wrote(): boolean
}

export function createApplier(statement: (sql: string) => StatementSync): Applier {
  const inserts = new Map<Table, (row: object) => void>()
  const guards = {
    agents: statement('SELECT 1 FROM agents WHERE id = ? AND version = ? AND ended_at IS NULL'),
    backends: statement('SELECT 1 FROM backends WHERE uid = ? AND version = ? AND ended_at IS NULL'),
  }
  /** Guards that held in this transaction; whatever `run` changes may end them. */
  const held = new Set<string>()
  let dirty = false

  function isHeld(step: Extract<Step, { op: 'guard' }>): boolean {
    const key = `${step.id}@${step.version}`
    if (held.has(key)) return true
    if (guards[step.table].get(step.id, step.version) === undefined) return false
    held.add(key)
    return true
  }

  function inserter(table: Table): (row: object) => void {
    const columns = columnNames(table)
    const prepared = statement(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    return (row) => {
      const cells = row as Record<string, Cell>
      prepared.run(...columns.map((column) => cells[column] ?? null))
    }
  }

  function runStep(step: Step): 'done' | 'guard' | 'rows' {
    switch (step.op) {
      case 'guard':
        return isHeld(step) ? 'done' : 'guard'
      case 'insert': {
        const insert = inserts.get(step.table) ?? inserter(step.table)
        inserts.set(step.table, insert)
        insert(step.row)
        dirty = true
        return 'done'
      }
      case 'run': {
        held.clear()
        const changed = Number(statement(step.sql).run(...step.params).changes)
        if (changed > 0) dirty = true
        return step.rows === 'any' || step.rows === changed ? 'done' : 'rows'
      }
      case 'invalidate':
        return 'done'
      default: {
        const never: never = step
        return never
      }
    }
  }

  return {
    begin: () => held.clear(),
    wrote: () => dirty,
    apply(change) {
      dirty = false
      for (const [index, step] of change.entries()) {
        try {
          const result = runStep(step)
          if (result !== 'done') return { done: false, step: index, reason: result }
        } catch (error) {
          if (isUniqueViolation(error)) return { done: false, step: index, reason: 'unique' }
          if (error instanceof Error && isFaultOfChange(error)) return error
          throw error
        }
      }
      return { done: true }
    },
  }
}

/**
 * All changes of a batch in one transaction with one sync. Tried first without savepoints; where a change was
 * refused after it had written, all is rolled back and done again with a savepoint each. Throws when the
 * transaction could not be committed: then nothing of it is kept in the view of this connection.
 */
export function commitBatch(db: DatabaseSync, applier: Applier, changes: readonly Change[]): Attempt[] {
  return tryBatch(db, applier, changes, false) ?? tryBatch(db, applier, changes, true) ?? []
}

function tryBatch(
  db: DatabaseSync,
  applier: Applier,
  changes: readonly Change[],
  careful: boolean,
): Attempt[] | undefined {
  db.exec('BEGIN IMMEDIATE')
  applier.begin()
  try {
    const attempts: Attempt[] = []
    for (const change of changes) {
      if (careful) db.exec('SAVEPOINT one')
      const attempt = applier.apply(change)
      const kept = !(attempt instanceof Error) && attempt.done
      if (!kept && applier.wrote()) {
        if (!careful) {
          db.exec('ROLLBACK')
          return undefined
        }
        db.exec('ROLLBACK TO one')
      }
      if (careful) db.exec('RELEASE one')
      attempts.push(attempt)
    }
    db.exec('COMMIT')
    return attempts
  } catch (error) {
    rollBack(db)
    throw error
  }
}

/** SQLite has often rolled back by itself; what fails here must not hide why the batch failed. */
function rollBack(db: DatabaseSync): void {
  try {
    if (db.isTransaction) db.exec('ROLLBACK')
  } catch {
    // The renewal of the file that follows closes the transaction with it.
  }
}
