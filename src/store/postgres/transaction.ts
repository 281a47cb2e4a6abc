import type pg from 'pg'
import type { Change, Outcome, Step, Topic, Value } from '../engine/change.ts'
import { columnTypes } from '../schema/columns.ts'
import { isUniqueViolation } from './errors.ts'
import { NOW_MS, raiseGeneration } from './generation.ts'

type Insert = Extract<Step, { op: 'insert' }>
type Raise = Extract<Step, { op: 'invalidate' }>
type TokenStep = Extract<Step, { op: 'token' }>
type Refusal = Extract<Outcome, { done: false }>

interface Failed {
  readonly failed: unknown
  /** COMMIT had been sent, so after a lost connection the outcome is unknown. */
  readonly committing: boolean
  /** The operation that failed. */
  readonly at: Step['op'] | undefined
}

export type Ended = { readonly outcome: Outcome } | Failed

/** How long a change waits for a lock before it goes to the lane that waits, in ms. */
const SHORT_LOCK_MS = 100

/**
 * Runs the change that `begun` returns once the transaction has begun. Unless it `waits`, it soon gives up on a row that another transaction has
 * locked. Never throws; after `failed` the transaction may still be open.
 */
export async function runTransaction(
  client: pg.PoolClient,
  begun: () => Change,
  waits: boolean,
): Promise<Ended> {
  let committing = false
  let at: Step['op'] | undefined
  try {
    const begin = 'BEGIN ISOLATION LEVEL READ COMMITTED'
    await client.query(waits ? begin : `${begin}; SET LOCAL lock_timeout = ${SHORT_LOCK_MS}`)
    const refusal = await runSteps(client, begun(), (step) => {
      at = step.op
    })
    if (refusal !== undefined) {
      await client.query('ROLLBACK')
      return { outcome: refusal }
    }
    committing = true
    await client.query('COMMIT')
    return { outcome: { done: true } }
  } catch (failed) {
    return { failed, committing, at }
  }
}

/**
 * The generation is raised last, and once for each topic: its row is one for all, so that it is locked for as short as can be, and
 * whoever holds it waits for nothing else.
 */
async function runSteps(
  client: pg.PoolClient,
  change: Change,
  onStep: (step: Step) => void,
): Promise<Refusal | undefined> {
  const raises = new Map<Topic | undefined, Step>()
  let index = 0
  for (let step = change[index]; step !== undefined; step = change[index]) {
    onStep(step)
    if (step.op === 'insert') {
      const inserts = insertsFrom(change, index)
      const refused = await insertAll(client, inserts)
      if (refused !== undefined) return { done: false, step: index + refused, reason: 'unique' }
      index += inserts.length
    } else if (step.op === 'invalidate') {
      raises.set(step.topic, step)
      index += 1
    } else {
      const reason = await runStep(client, step)
      if (reason !== undefined) return { done: false, step: index, reason }
      index += 1
    }
  }
  for (const [topic, step] of raises) {
    onStep(step)
    await client.query(raiseGeneration(topic))
  }
  return undefined
}

/** The inserts into one table that start at `index`. They go as one statement. */
function insertsFrom(change: Change, index: number): Insert[] {
  const inserts: Insert[] = []
  for (const step of change.slice(index)) {
    if (step.op !== 'insert' || (inserts[0] !== undefined && inserts[0].table !== step.table)) break
    inserts.push(step)
  }
  return inserts
}

/**
 * Returns the position of the insert that violates a unique index. PostgreSQL does not say which row of a statement
 * did, so after the violation the rows are inserted again, one by one.
 */
async function insertAll(client: pg.PoolClient, inserts: readonly Insert[]): Promise<number | undefined> {
  if (inserts.length > 1) await client.query('SAVEPOINT inserts')
  try {
    await insertRows(client, inserts)
    return undefined
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    if (inserts.length === 1) return 0
    await client.query('ROLLBACK TO inserts')
    for (const [index, insert] of inserts.entries())
      if ((await insertAll(client, [insert])) !== undefined) return index
    return undefined
  }
}

async function insertRows(client: pg.PoolClient, inserts: readonly Insert[]): Promise<void> {
  const table = inserts[0]?.table
  if (table === undefined) return
  const columns = columnTypes(table)
  const names = columns.map(([name]) => name)
  const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`)
  const rows = inserts.map(({ row }): Record<string, Value> => row)
  await client.query({
    name: `insert:${table}`,
    text: `INSERT INTO ${table} (${names.join(', ')}) SELECT * FROM unnest(${arrays.join(', ')})`,
    values: names.map((name) => rows.map((row) => row[name] ?? null)),
  })
}

async function runStep(
  client: pg.PoolClient,
  step: Exclude<Step, Insert | Raise>,
): Promise<Refusal['reason'] | undefined> {
  switch (step.op) {
    case 'guard': {
      const key = step.table === 'backends' ? 'uid' : 'id'
      const text = `SELECT 1 FROM ${step.table} WHERE ${key} = $1 AND version = $2 AND ended_at IS NULL FOR SHARE`
      const found = await client.query(text, [step.id, step.version])
      return found.rowCount === 1 ? undefined : 'guard'
    }
    case 'token':
      return (await isValid(client, step)) ? undefined : 'guard'
    case 'run':
      try {
        const { rowCount } = await client.query(step.sql, [...step.params])
        return step.rows === 'any' || step.rows === rowCount ? undefined : 'rows'
      } catch (error) {
        if (isUniqueViolation(error)) return 'unique'
        throw error
      }
    default: {
      const never: never = step
      return never
    }
  }
}

/**
 * Revoking a token changes the row of its agent first. So once that row is locked, no revocation is under way, and the
 * second statement, which sees all that was committed before it began, sees every earlier one.
 */
async function isValid(client: pg.PoolClient, { jti, kid, agentId, expiresAt }: TokenStep): Promise<boolean> {
  const agent = 'SELECT 1 FROM agents WHERE id = $1 AND ended_at IS NULL FOR SHARE'
  if ((await client.query(agent, [agentId])).rowCount !== 1) return false
  const key = `SELECT 1 FROM issuer_keys WHERE kid = $1 AND (retires_at IS NULL OR retires_at > ${NOW_MS})
    AND $2::bigint > ${NOW_MS} AND NOT EXISTS (SELECT 1 FROM revoked_tokens WHERE jti = $3) FOR SHARE`
  return (await client.query(key, [kid, expiresAt, jti])).rowCount === 1
}
