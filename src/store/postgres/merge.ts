import type { Change, Step } from '../engine/change.ts'
import { columnNames, columnTypes } from '../schema/columns.ts'
import type { Table } from '../schema/rows.ts'

/**
 * Changes that only guard and insert go together as one statement over arrays: one round trip and one sync for
 * all that queued up. A change whose guards fail is left out; the others are kept.
 */
type Insert = Extract<Step, { op: 'insert' }>
type Guard = Extract<Step, { op: 'guard' }>

/** Guards first, then inserts: in the one statement every guard is looked at before anything is inserted. */
export function isMergeable(change: Change): boolean {
  const inserts = change.findIndex((step) => step.op !== 'guard')
  return inserts === -1 || change.slice(inserts).every((step) => step.op === 'insert')
}

export interface Merged {
  /** The same for every batch that touches the same tables: it is prepared under this name. */
  readonly name: string
  readonly text: string
  readonly values: unknown[][]
}

/** Rows of the answer are `{ n, step }`: the positions in `changes` of those left out, and the guard that failed. */
export function mergeChanges(changes: readonly Change[]): Merged {
  const guards: { n: number; step: number; guard: Guard }[] = []
  const inserts = new Map<Table, { n: number; row: Record<string, unknown> }[]>()
  changes.forEach((change, n) => {
    for (const [index, step] of change.entries()) {
      if (step.op === 'guard') guards.push({ n, step: index, guard: step })
      else if (step.op === 'insert') rowsOf(inserts, step).push({ n, row: step.row })
    }
  })
  const tables = [...inserts.keys()].sort()
  const values: unknown[][] = [
    guards.map(({ n }) => n),
    guards.map(({ step }) => step),
    guards.map(({ guard }) => guard.table),
    guards.map(({ guard }) => guard.id),
    guards.map(({ guard }) => guard.version),
  ]
  for (const table of tables) {
    const rows = inserts.get(table) ?? []
    values.push(rows.map(({ n }) => n))
    for (const column of columnNames(table)) values.push(rows.map(({ row }) => row[column] ?? null))
  }
  const name = `merge:${tables.join(',')}`
  return { name, text: textFor(name, tables), values }
}

function rowsOf(
  inserts: Map<Table, { n: number; row: Record<string, unknown> }[]>,
  step: Insert,
): { n: number; row: Record<string, unknown> }[] {
  let rows = inserts.get(step.table)
  if (rows === undefined) {
    rows = []
    inserts.set(step.table, rows)
  }
  return rows
}

const texts = new Map<string, string>()

function textFor(name: string, tables: readonly Table[]): string {
  const known = texts.get(name)
  if (known !== undefined) return known
  const text = writeText(tables)
  texts.set(name, text)
  return text
}

/**
 * The guarded rows are locked FOR SHARE, which waits for whoever is ending them and then sees them ended
 * (PostgreSQL manual, 13.2.1: the condition is evaluated again on the updated row).
 */
function writeText(tables: readonly Table[]): string {
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
