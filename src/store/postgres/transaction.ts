import type pg from 'pg'
import type { Change, Outcome, Step } from '../engine/change.ts'
import { columnTypes } from '../schema/columns.ts'
import { isUniqueViolation } from './errors.ts'

type Insert = Extract<Step, { op: 'insert' }>

/** `committing`: COMMIT had been sent, so that a lost connection leaves the outcome unknown. */
export type Ended = { readonly outcome: Outcome } | { readonly failed: unknown; readonly committing: boolean }

/** One change in its own transaction. Never throws; after `failed` the connection may be inside a transaction. */
export async function runTransaction(client: pg.PoolClient, change: Change): Promise<Ended> {
  const ended = await tryTransaction(client, change, true)
  // Inserts that went as one statement do not tell which of them was refused: once more, one at a time.
  return ended === 'which' ? asEnded(await tryTransaction(client, change, false)) : ended
}

function asEnded(ended: Ended | 'which'): Ended {
  return ended === 'which' ? { failed: new Error('unreachable'), committing: false } : ended
}

async function tryTransaction(
  client: pg.PoolClient,
  change: Change,
  grouped: boolean,
): Promise<Ended | 'which'> {
  let committing = false
  let step = 0
  let group = 1
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
    for (; step < change.length; step += group) {
      const inserts = insertsFrom(change, step, grouped)
      group = Math.max(1, inserts.length)
      const refused =
        inserts.length > 0 ? await insertAll(client, inserts) : await runStep(client, change[step])
      if (refused === undefined) continue
      await client.query('ROLLBACK')
      return { outcome: { done: false, step, reason: refused } }
    }
    committing = true
    await client.query('COMMIT')
    return { outcome: { done: true } }
  } catch (failed) {
    if (committing || !isUniqueViolation(failed)) return { failed, committing }
    try {
      await client.query('ROLLBACK')
    } catch (lost) {
      return { failed: lost, committing: false }
    }
    return group > 1 ? 'which' : { outcome: { done: false, step, reason: 'unique' } }
  }
}

/** The run of inserts into one table that starts at `index`: they go as one statement. */
function insertsFrom(change: Change, index: number, grouped: boolean): Insert[] {
  const taken: Insert[] = []
  for (const step of change.slice(index, grouped ? undefined : index + 1)) {
    if (step.op !== 'insert' || (taken[0] !== undefined && taken[0].table !== step.table)) break
    taken.push(step)
  }
  return taken
}

async function insertAll(client: pg.PoolClient, inserts: readonly Insert[]): Promise<undefined> {
  const table = inserts[0]?.table
  if (table === undefined) return
  const columns = columnTypes(table)
  const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`)
  const text = `INSERT INTO ${table} (${columns.map(([name]) => name).join(', ')}) SELECT * FROM unnest(${arrays.join(', ')})`
  const rows = inserts.map((insert) => insert.row as Record<string, unknown>)
  await client.query({
    name: `insert:${table}`,
    text,
    values: columns.map(([name]) => rows.map((row) => row[name] ?? null)),
  })
}

async function runStep(client: pg.PoolClient, step: Step | undefined): Promise<'guard' | 'rows' | undefined> {
  switch (step?.op) {
    case 'guard': {
      const key = step.table === 'agents' ? 'id' : 'uid'
      const text = `SELECT 1 FROM ${step.table} WHERE ${key} = $1 AND version = $2 AND ended_at IS NULL FOR SHARE`
      const found = await client.query(text, [step.id, step.version])
      return found.rowCount === 1 ? undefined : 'guard'
    }
    case 'run': {
      const { rowCount } = await client.query(step.sql, [...step.params])
      return step.rows === 'any' || step.rows === rowCount ? undefined : 'rows'
    }
    case 'invalidate':
      await client.query("UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'generation'")
      return undefined
    case 'insert':
    case undefined:
      return undefined
    default: {
      const never: never = step
      return never
    }
  }
}
