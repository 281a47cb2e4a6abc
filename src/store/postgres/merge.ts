import type { Change, Step, Value } from '../engine/change.ts'
import { columnNames, columnTypes, type Table } from '../schema/columns.ts'

type Insert = Extract<Step, { op: 'insert' }>
type Guard = Extract<Step, { op: 'guard' }>

/** Whether `change` only guards and inserts, guards first: the merged statement checks every guard before it inserts. */
export function isMergeable(change: Change): boolean {
  const inserts = change.findIndex((step) => step.op !== 'guard')
  return inserts === -1 || change.slice(inserts).every((step) => step.op === 'insert')
}

export interface MergedStatement {
  /** The same for all batches that insert into the same tables. PostgreSQL prepares the statement under this name. */
  readonly name: string
  readonly text: string
  readonly values: unknown[][]
}

/** A change that was left out, by its position `n`. */
export interface MergedRefusal {
  readonly n: number
  /** The guard that failed. */
  readonly step: number
  /** Its guards may hold: their rows are locked by another transaction. */
  readonly locked: boolean
}

/** The rows that the changes at positions `n` insert into one table. */
interface TableRows {
  readonly n: number[]
  readonly rows: Record<string, Value>[]
}

/**
 * Merges mergeable changes into one statement over arrays: one round trip and one sync for the whole batch. A change
 * whose guard fails is left out; the others are committed.
 */
export class Merger {
  readonly #texts = new Map<string, string>()

  /**
   * The statement returns `MergedRefusal`s. With `waits` it waits for guarded rows that another transaction has locked;
   * otherwise it leaves out their changes.
   */
  merge(changes: readonly Change[], waits = false): MergedStatement {
    const guards: { n: number; step: number; guard: Guard }[] = []
    const inserts = new Map<Table, TableRows>()
    for (const [n, change] of changes.entries()) {
      for (const [index, step] of change.entries()) {
        if (step.op === 'guard') guards.push({ n, step: index, guard: step })
        else if (step.op === 'insert') addRow(inserts, n, step)
      }
    }
    const tables = [...inserts.keys()].sort()
    const values: unknown[][] = [
      guards.map(({ n }) => n),
      guards.map(({ step }) => step),
      guards.map(({ guard }) => guard.table),
      guards.map(({ guard }) => guard.id),
      guards.map(({ guard }) => guard.version),
    ]
    for (const table of tables) {
      const { n, rows } = inserts.get(table) ?? { n: [], rows: [] }
      values.push(n)
      for (const column of columnNames(table)) values.push(rows.map((row) => row[column] ?? null))
    }
    const name = `merge${waits ? ' and wait' : ''}:${tables.join(',')}`
    let text = this.#texts.get(name)
    if (text === undefined) {
      text = textFor(tables, waits)
      this.#texts.set(name, text)
    }
    return { name, text, values }
  }
}

function addRow(inserts: Map<Table, TableRows>, n: number, { table, row }: Insert): void {
  let found = inserts.get(table)
  if (found === undefined) {
    found = { n: [], rows: [] }
    inserts.set(table, found)
  }
  found.n.push(n)
  found.rows.push(row)
}

/**
 * Guarded rows are locked FOR SHARE. With `waits` the lock waits for a transaction that is ending the row and then sees it
 * ended (PostgreSQL manual, 13.2.1: the condition is evaluated again on the updated row).
 */
function textFor(tables: readonly Table[], waits: boolean): string {
  const parts = [
    'g AS MATERIALIZED (SELECT * FROM unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::bigint[]) AS g (n, step, t, id, version))',
    liveRows('agents', 'id', waits),
    liveRows('backends', 'uid', waits),
    `refused AS MATERIALIZED (SELECT * FROM g
      WHERE NOT EXISTS (SELECT 1 FROM live_agents l WHERE g.t = 'agents' AND l.id = g.id AND l.version = g.version)
        AND NOT EXISTS (SELECT 1 FROM live_backends l WHERE g.t = 'backends' AND l.id = g.id AND l.version = g.version))`,
  ]
  let next = 6
  for (const table of tables) {
    const columns = columnTypes(table)
    const arrays = ['int', ...columns.map(([, type]) => type)].map((type) => `$${next++}::${type}[]`)
    const names = columns.map(([name]) => name)
    parts.push(`insert_${table} AS (INSERT INTO ${table} (${names.join(', ')})
      SELECT ${names.map((name) => `r.${name}`).join(', ')} FROM unnest(${arrays.join(', ')}) AS r (n, ${names.join(', ')})
      WHERE r.n NOT IN (SELECT refused.n FROM refused))`)
  }
  // Read without a lock, a row that was skipped is still as the guard requires it.
  return `WITH ${parts.join(',\n')}
    SELECT r.n, min(r.step) AS step, bool_and(
      EXISTS (SELECT 1 FROM agents a WHERE r.t = 'agents' AND a.id = r.id AND a.version = r.version AND a.ended_at IS NULL)
      OR EXISTS (SELECT 1 FROM backends b WHERE r.t = 'backends' AND b.uid = r.id AND b.version = r.version AND b.ended_at IS NULL)
    ) AS locked FROM refused r GROUP BY r.n`
}

function liveRows(table: 'agents' | 'backends', key: string, waits: boolean): string {
  return `live_${table} AS MATERIALIZED (SELECT ${key} AS id, version FROM ${table}
      WHERE ${key} = ANY (SELECT g.id FROM g WHERE g.t = '${table}') AND ended_at IS NULL FOR SHARE${waits ? '' : ' SKIP LOCKED'})`
}
