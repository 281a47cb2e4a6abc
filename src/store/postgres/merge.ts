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

  /** The statement returns `{ n, step }`: the positions in `changes` of those left out, and the guard that failed. */
  merge(changes: readonly Change[]): MergedStatement {
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
    const name = `merge:${tables.join(',')}`
    let text = this.#texts.get(name)
    if (text === undefined) {
      text = textFor(tables)
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
 * Guarded rows are locked FOR SHARE. The lock waits for a transaction that is ending the row and then sees it ended
 * (PostgreSQL manual, 13.2.1: the condition is evaluated again on the updated row).
 */
function textFor(tables: readonly Table[]): string {
  const parts = [
    'g AS MATERIALIZED (SELECT * FROM unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::bigint[]) AS g (n, step, t, id, version))',
    liveRows('agents', 'id'),
    liveRows('backends', 'uid'),
    `refused AS MATERIALIZED (SELECT g.n, min(g.step) AS step FROM g
      WHERE NOT EXISTS (SELECT 1 FROM live_agents l WHERE g.t = 'agents' AND l.id = g.id AND l.version = g.version)
        AND NOT EXISTS (SELECT 1 FROM live_backends l WHERE g.t = 'backends' AND l.id = g.id AND l.version = g.version)
      GROUP BY g.n)`,
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
  return `WITH ${parts.join(',\n')}\nSELECT n, step FROM refused`
}

function liveRows(table: 'agents' | 'backends', key: string): string {
  return `live_${table} AS MATERIALIZED (SELECT ${key} AS id, version FROM ${table}
      WHERE ${key} = ANY (SELECT g.id FROM g WHERE g.t = '${table}') AND ended_at IS NULL FOR SHARE)`
}
