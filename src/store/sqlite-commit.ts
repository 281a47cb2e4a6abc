import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Change, Outcome, Step } from './change.ts'
import { columnNames } from './columns.ts'
import type { Table } from './schema.ts'

type Cell = string | number | null
const REFUSED_UNIQUE = new Set([2067, 1555])

/** Runs one change inside the transaction that is open. */
export interface Applier {
  apply(change: Change): Outcome
  /** Whether the last refused change had written before it was refused, so that the transaction is spoilt. */
  wrote(): boolean
}

export function errcodeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined
}

export function createApplier(statement: (sql: string) => StatementSync): Applier {
  const inserts = new Map<Table, (row: object) => void>()
  const guards = {
    agents: statement('SELECT 1 FROM agents WHERE id = ? AND version = ? AND ended_at IS NULL'),
    backends: statement('SELECT 1 FROM backends WHERE uid = ? AND version = ? AND ended_at IS NULL'),
  }
  let dirty = false

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

  function run(step: Step): 'done' | 'guard' | 'rows' {
    switch (step.op) {
      case 'guard':
        return guards[step.table].get(step.id, step.version) === undefined ? 'guard' : 'done'
      case 'insert': {
        let insert = inserts.get(step.table)
        if (insert === undefined) {
          insert = inserter(step.table)
          inserts.set(step.table, insert)
        }
        insert(step.row)
        dirty = true
        return 'done'
      }
      case 'run': {
        const changed = Number(statement(step.sql).run(...step.params).changes)
        if (changed > 0) dirty = true
        return step.rows === 'any' || step.rows === changed ? 'done' : 'rows'
      }
      case 'forget':
        return 'done'
      default: {
        const never: never = step
        return never
      }
    }
  }

  return {
    wrote: () => dirty,
    apply(change) {
      dirty = false
      for (const [index, step] of change.entries()) {
        try {
          const result = run(step)
          if (result !== 'done') return { done: false, step: index, reason: result }
        } catch (error) {
          if (REFUSED_UNIQUE.has(errcodeOf(error) ?? 0)) return { done: false, step: index, reason: 'unique' }
          throw error
        }
      }
      return { done: true }
    },
  }
}

/**
 * All changes of a batch in one transaction with one sync. Tried first without savepoints; where a change was
 * refused after it had written, all is rolled back and done again with a savepoint each.
 */
export function commitBatch(db: DatabaseSync, applier: Applier, changes: readonly Change[]): Outcome[] {
  return tryBatch(db, applier, changes, false) ?? tryBatch(db, applier, changes, true) ?? []
}

function tryBatch(
  db: DatabaseSync,
  applier: Applier,
  changes: readonly Change[],
  careful: boolean,
): Outcome[] | undefined {
  db.exec('BEGIN IMMEDIATE')
  try {
    const outcomes: Outcome[] = []
    for (const change of changes) {
      if (careful) db.exec('SAVEPOINT one')
      const outcome = applier.apply(change)
      if (!outcome.done && applier.wrote()) {
        if (!careful) {
          db.exec('ROLLBACK')
          return undefined
        }
        db.exec('ROLLBACK TO one')
      }
      if (careful) db.exec('RELEASE one')
      outcomes.push(outcome)
    }
    db.exec('COMMIT')
    return outcomes
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
