import type { Change, Step, Value } from '../engine/change.ts'
import { columnNames, columnTypes, type Table } from '../schema/columns.ts'
import { NOW_MS } from './generation.ts'

type Insert = Extract<Step, { op: 'insert' }>
type Guard = Extract<Step, { op: 'guard' }>
type Token = Extract<Step, { op: 'token' }>

/** Whether `change` only guards and inserts, guards first: the merged statement checks every guard before it inserts. */
export function isMergeable(change: Change): boolean {
  const inserts = change.findIndex((step) => step.op !== 'guard' && step.op !== 'token')
  return inserts === -1 || change.slice(inserts).every((step) => step.op === 'insert')
}

export interface MergedStatement {
  /** The same for all batches that insert into the same tables. PostgreSQL prepares the statement under this name. */
  readonly name: string
  readonly text: string
  readonly values: unknown[]
}

/** A change that was left out, by its position `n`. */
export interface MergedRefusal {
  readonly n: number
  /** The first guard that failed. */
  readonly step: number
  /** That guard may hold: another transaction has locked its row. */
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
   * otherwise it leaves out their changes. A failed `token` proves nothing yet: its agent may only have changed meanwhile, so the
   * change needs its own transaction. `sentAt`, in epoch ms: entries that arrive much later are an error.
   */
  merge(changes: readonly Change[], sentAt: number, waits = false): MergedStatement {
    const guards: { n: number; step: number; guard: Guard }[] = []
    const tokens: { n: number; step: number; token: Token }[] = []
    const inserts = new Map<Table, TableRows>()
    for (const [n, change] of changes.entries()) {
      for (const [index, step] of change.entries()) {
        if (step.op === 'guard') guards.push({ n, step: index, guard: step })
        else if (step.op === 'token') tokens.push({ n, step: index, token: step })
        else if (step.op === 'insert') addRow(inserts, n, step)
      }
    }
    const tables = [...inserts.keys()].sort()
    const values: unknown[] = [
      guards.map(({ n }) => n),
      guards.map(({ step }) => step),
      guards.map(({ guard }) => guard.table),
      guards.map(({ guard }) => guard.id),
      guards.map(({ guard }) => guard.version),
      sentAt,
    ]
    for (const table of tables) {
      const { n, rows } = inserts.get(table) ?? { n: [], rows: [] }
      values.push(n)
      for (const column of columnNames(table)) values.push(rows.map((row) => row[column] ?? null))
    }
    if (tokens.length > 0)
      values.push(
        tokens.map(({ n }) => n),
        tokens.map(({ step }) => step),
        tokens.map(({ token }) => token.jti),
        tokens.map(({ token }) => token.kid),
        tokens.map(({ token }) => token.agentId),
        tokens.map(({ token }) => token.expiresAt),
      )
    const more = { byToken: tokens.length > 0, inRun: guards.some(({ guard }) => guard.table === 'runs') }
    const name = `merge${waits ? ' and wait' : ''}:${tables.join(',')}${more.byToken ? ',by token' : ''}${more.inRun ? ',in run' : ''}`
    let text = this.#texts.get(name)
    if (text === undefined) {
      text = textFor(tables, more, waits)
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
function textFor(
  tables: readonly Table[],
  { byToken, inRun }: { readonly byToken: boolean; readonly inRun: boolean },
  waits: boolean,
): string {
  let next = 7
  const inserts: string[] = []
  for (const table of tables) {
    const columns = columnTypes(table)
    const arrays = ['int', ...columns.map(([, type]) => type)].map((type) => `$${next++}::${type}[]`)
    const names = columns.map(([name]) => name)
    inserts.push(`insert_${table} AS (INSERT INTO ${table} (${names.join(', ')})
      SELECT ${names.map((name) => `r.${name}`).join(', ')} FROM unnest(${arrays.join(', ')}) AS r (n, ${names.join(', ')})
      WHERE r.n NOT IN (SELECT refused.n FROM refused)${table === 'audit' ? ` AND ${IN_TIME}` : ''})`)
  }
  const lock = waits ? 'FOR SHARE' : 'FOR SHARE SKIP LOCKED'
  const parts = [
    'g AS MATERIALIZED (SELECT * FROM unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::bigint[]) AS g (n, step, t, id, version))',
    'sent AS (SELECT $6::bigint AS at)',
    ...(byToken ? tokenRows(next, lock) : []),
    liveRows('agents', 'id', byToken ? ' UNION SELECT t.agent FROM t' : '', lock),
    liveRows('backends', 'uid', '', lock),
    ...(inRun ? [liveRows('runs', 'id', '', lock)] : []),
    `refused AS MATERIALIZED (SELECT DISTINCT ON (n) n, step, locked FROM (SELECT g.n, g.step, (${IS_UNCHANGED}${inRun ? ` OR ${IS_UNCHANGED_RUN}` : ''}) AS locked FROM g
      WHERE NOT EXISTS (SELECT 1 FROM live_agents l WHERE g.t = 'agents' AND l.id = g.id AND l.version = g.version)
        AND NOT EXISTS (SELECT 1 FROM live_backends l WHERE g.t = 'backends' AND l.id = g.id AND l.version = g.version)
        ${inRun ? "AND NOT EXISTS (SELECT 1 FROM live_runs l WHERE g.t = 'runs' AND l.id = g.id AND l.version = g.version)" : ''}
      ${byToken ? REFUSED_TOKENS : ''}) AS r ORDER BY n, step)`,
    ...inserts,
  ]
  return `WITH ${parts.join(',\n')}\nSELECT n, step, locked FROM refused`
}

/** As long as the driver waits for the reply, in ms. */
export const LATEST_MS = 15_000
/**
 * A network can keep a statement that nobody waits for any more, and its entries would then have ids that all readers have
 * passed. Division by zero is the error that SQL can raise by itself.
 */
const IN_TIME = `(SELECT 1 / (${NOW_MS} - sent.at < ${LATEST_MS})::int FROM sent) = 1`

/** Read without a lock, a skipped row still satisfies the guard. */
const IS_UNCHANGED = `
      EXISTS (SELECT 1 FROM agents a WHERE g.t = 'agents' AND a.id = g.id AND a.version = g.version AND a.ended_at IS NULL)
      OR EXISTS (SELECT 1 FROM backends b WHERE g.t = 'backends' AND b.uid = g.id AND b.version = g.version AND b.ended_at IS NULL)`
const IS_UNCHANGED_RUN = `EXISTS (SELECT 1 FROM runs r WHERE g.t = 'runs' AND r.id = g.id AND r.version = g.version AND r.ended_at IS NULL)`

function liveRows(table: 'agents' | 'backends' | 'runs', key: string, more: string, lock: string): string {
  return `live_${table} AS MATERIALIZED (SELECT ${key} AS id, version FROM ${table}
      WHERE ${key} = ANY (SELECT g.id FROM g WHERE g.t = '${table}'${more}) AND ended_at IS NULL ${lock})`
}

/**
 * The whole statement sees `revoked_tokens` as it was when the statement began, however long it then waits for a lock.
 * But revoking a token changes the row of its agent first, so `seen`, which is as old, then differs from `live_agents`,
 * which is as new as the lock.
 */
function tokenRows(first: number, lock: string): string[] {
  const arrays = ['int', 'int', 'text', 'text', 'text', 'bigint'].map((type, n) => `$${first + n}::${type}[]`)
  return [
    `t AS MATERIALIZED (SELECT * FROM unnest(${arrays.join(', ')}) AS t (n, step, jti, kid, agent, expires_at))`,
    'seen AS MATERIALIZED (SELECT id, version FROM agents WHERE id = ANY (SELECT t.agent FROM t))',
    `live_keys AS MATERIALIZED (SELECT kid FROM issuer_keys
      WHERE kid = ANY (SELECT t.kid FROM t) AND (retires_at IS NULL OR retires_at > ${NOW_MS}) ${lock})`,
  ]
}

const REFUSED_TOKENS = `UNION ALL SELECT t.n, t.step, true FROM t
      WHERE t.expires_at <= ${NOW_MS}
        OR NOT EXISTS (SELECT 1 FROM live_keys k WHERE k.kid = t.kid)
        OR NOT EXISTS (SELECT 1 FROM live_agents l JOIN seen s ON s.id = l.id AND s.version = l.version WHERE l.id = t.agent)
        OR EXISTS (SELECT 1 FROM revoked_tokens r WHERE r.jti = t.jti)`
