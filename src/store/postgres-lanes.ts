import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { type Change, type Outcome, type Step, StoreError } from './change.ts'
import { COLUMNS } from './columns.ts'
import type { CommitStats } from './engine.ts'
import { isRetryable, isUniqueViolation, unreachable } from './postgres-errors.ts'
import { isMergeable, mergeChanges } from './postgres-merge.ts'
import type { Table } from './schema.ts'

const MAX_BATCH = 512
const MAX_QUEUE = 4_096
/** Merged statements under way at once: while one syncs, the next fills. */
const MERGE_LANES = 2
/** Changes with their own transaction under way at once. */
const SINGLE_LANES = 4
const TRIES = 5

interface Waiting {
  change: Change
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

/** The queues of changes of one node, and the few connections that work them off. */
export class Lanes {
  readonly stats: CommitStats = { commits: 0, changes: 0, largestBatch: 0 }
  readonly #pool: pg.Pool
  readonly #onTrouble: ((what: string, error: unknown) => void) | undefined
  readonly #merging: Waiting[] = []
  readonly #single: Waiting[] = []
  #mergesUnderWay = 0
  #singlesUnderWay = 0
  #scheduled = false
  #trouble: string | undefined

  constructor(pool: pg.Pool, onTrouble?: (what: string, error: unknown) => void) {
    this.#pool = pool
    this.#onTrouble = onTrouble
  }

  commit = (change: Change): Promise<Outcome> =>
    new Promise((resolve, reject) => {
      if (this.#merging.length + this.#single.length >= MAX_QUEUE) {
        reject(new StoreError('too many changes are waiting'))
        return
      }
      const queue = isMergeable(change) ? this.#merging : this.#single
      queue.push({ change, resolve, reject })
      if (this.#scheduled) return
      this.#scheduled = true
      setImmediate(() => this.#pump())
    })

  trouble(): string | undefined {
    return this.#trouble
  }

  /** Resolves when nothing is queued or under way. */
  async drain(): Promise<void> {
    while (this.#merging.length + this.#single.length + this.#mergesUnderWay + this.#singlesUnderWay > 0) {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #pump(): void {
    this.#scheduled = false
    while (this.#merging.length > 0 && this.#mergesUnderWay < MERGE_LANES) {
      this.#mergesUnderWay += 1
      void this.#runMerged(this.#merging.splice(0, MAX_BATCH)).finally(() => {
        this.#mergesUnderWay -= 1
        this.#pump()
      })
    }
    while (this.#single.length > 0 && this.#singlesUnderWay < SINGLE_LANES) {
      const one = this.#single.shift()
      if (one === undefined) break
      this.#singlesUnderWay += 1
      void this.#runSingle(one).finally(() => {
        this.#singlesUnderWay -= 1
        this.#pump()
      })
    }
  }

  async #runMerged(batch: Waiting[]): Promise<void> {
    try {
      const answer = await this.#pool.query(mergeChanges(batch.map((one) => one.change)))
      const kept = new Set((answer.rows as { n: number }[]).map((row) => row.n))
      this.#count(batch.length)
      for (const [n, one] of batch.entries()) {
        one.resolve(kept.has(n) ? { done: true } : { done: false, step: 0, reason: 'guard' })
      }
    } catch (error) {
      if (unreachable(error)) await Promise.all(batch.map((one) => this.#settleUnknown(one, error)))
      else this.#single.push(...batch)
    }
  }

  async #runSingle(one: Waiting): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const outcome = await runTransaction(this.#pool, one.change)
        this.#count(1)
        one.resolve(outcome)
        return
      } catch (error) {
        if (isRetryable(error) && attempt < TRIES) continue
        if (unreachable(error)) await this.#settleUnknown(one, error)
        else this.#fail(one, 'the database refused a change', error)
        return
      }
    }
  }

  /** The reply to COMMIT was lost: our own id is read back. Whoever cannot be asked is not acknowledged. */
  async #settleUnknown(one: Waiting, error: unknown): Promise<void> {
    const witness = one.change.findLast((step) => step.op === 'insert')
    for (let attempt = 1; witness !== undefined && attempt <= TRIES; attempt += 1) {
      try {
        if (await wasKept(this.#pool, witness)) one.resolve({ done: true })
        else this.#fail(one, 'the connection to the database was lost', error)
        return
      } catch {
        await setTimeout(100 * 2 ** attempt)
      }
    }
    this.#fail(one, 'the database cannot be reached', error)
  }

  #fail(one: Waiting, what: string, cause: unknown): void {
    this.#trouble = what
    this.#onTrouble?.(what, cause)
    one.reject(new StoreError(what, { cause }))
  }

  #count(changes: number): void {
    this.#trouble = undefined
    this.stats.commits += 1
    this.stats.changes += changes
    this.stats.largestBatch = Math.max(this.stats.largestBatch, changes)
  }
}

async function runTransaction(pool: pg.Pool, change: Change): Promise<Outcome> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query('BEGIN')
    for (const [index, step] of change.entries()) {
      const refused = await runStep(client, step)
      if (refused !== undefined) {
        await client.query('ROLLBACK')
        return { done: false, step: index, reason: refused }
      }
    }
    await client.query('COMMIT')
    return { done: true }
  } catch (error) {
    if (unreachable(error)) broken = error instanceof Error ? error : new Error('lost')
    else
      await client.query('ROLLBACK').catch((lost: Error) => {
        broken = lost
      })
    if (isUniqueViolation(error)) return { done: false, step: -1, reason: 'unique' }
    throw error
  } finally {
    client.release(broken)
  }
}

async function runStep(client: pg.PoolClient, step: Step): Promise<'guard' | 'rows' | undefined> {
  switch (step.op) {
    case 'guard': {
      const key = step.table === 'agents' ? 'id' : 'uid'
      const found = await client.query(
        `SELECT 1 FROM ${step.table} WHERE ${key} = $1 AND version = $2 AND ended_at IS NULL FOR SHARE`,
        [step.id, step.version],
      )
      return found.rowCount === 1 ? undefined : 'guard'
    }
    case 'insert': {
      await client.query(
        insertText(step.table),
        Object.keys(COLUMNS[step.table]).map(
          (column) => (step.row as unknown as Record<string, unknown>)[column] ?? null,
        ),
      )
      return undefined
    }
    case 'run': {
      const { rowCount } = await client.query(step.sql, [...step.params])
      return step.rows === 'any' || step.rows === rowCount ? undefined : 'rows'
    }
    case 'forget':
      await client.query("UPDATE meta SET value = (value::bigint + 1)::text WHERE key = 'generation'")
      return undefined
    default: {
      const never: never = step
      return never
    }
  }
}

function insertText(table: Table): string {
  const columns = Object.keys(COLUMNS[table])
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((_, index) => `$${index + 1}`).join(', ')})`
}

async function wasKept(pool: pg.Pool, witness: Extract<Step, { op: 'insert' }>): Promise<boolean> {
  const [key] = Object.keys(COLUMNS[witness.table])
  const id = (witness.row as unknown as Record<string, unknown>)[key ?? '']
  const answer = await pool.query(`SELECT 1 FROM ${witness.table} WHERE ${key} = $1`, [id])
  return answer.rowCount === 1
}
