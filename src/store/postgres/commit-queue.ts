import type pg from 'pg'
import type { Change, Outcome } from '../engine/change.ts'
import type { CommitStats } from '../engine/engine.ts'
import { requireStorable } from '../engine/run.ts'
import { StoreError } from '../errors.ts'
import { asError, isFaultOfChange, isRetryable, isSpent, unreachable } from './errors.ts'
import { pidOf, readBack } from './lost-commit.ts'
import { isMergeable, mergeChanges } from './merge.ts'
import { runTransaction } from './transaction.ts'

const MAX_BATCH = 512
const MAX_QUEUE = 4_096
/** Merged statements under way at once: while one syncs, the next fills. */
const MERGE_LANES = 2
/** Changes with their own transaction under way at once. */
const SINGLE_LANES = 4
/** Connections that the lanes can use at once. */
export const LANES = MERGE_LANES + SINGLE_LANES
const TRIES = 5
const TRIAL =
  "INSERT INTO meta (key, value) VALUES ('trial', '') ON CONFLICT (key) DO UPDATE SET value = excluded.value"

interface Waiting {
  readonly change: Change
  tries: number
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

export interface LaneOptions {
  /** Sessions of this node carry this name, and no others do. */
  application: string
  onTrouble?: ((what: string, error: unknown) => void) | undefined
}

/** The queues of changes of one node, and the few connections that work them off. */
export class Lanes {
  readonly stats: CommitStats = { commits: 0, changes: 0, largestBatch: 0 }
  readonly #pool: pg.Pool
  readonly #options: LaneOptions
  readonly #merging: Waiting[] = []
  readonly #single: Waiting[] = []
  readonly #underWay = new Set<Promise<void>>()
  #merges = 0
  #singles = 0
  #scheduled = false
  #closed = false
  #trouble: string | undefined

  constructor(pool: pg.Pool, options: LaneOptions) {
    this.#pool = pool
    this.#options = options
  }

  commit = async (change: Change): Promise<Outcome> => {
    requireStorable(change)
    if (this.#closed) throw new StoreError('the store is closed')
    if (this.#merging.length + this.#single.length >= MAX_QUEUE) {
      throw new StoreError('too many changes are waiting')
    }
    return new Promise((resolve, reject) => {
      const queue = isMergeable(change) ? this.#merging : this.#single
      queue.push({ change, tries: 0, resolve, reject })
      if (this.#scheduled) return
      this.#scheduled = true
      setImmediate(() => this.#pump())
    })
  }

  trouble(): string | undefined {
    return this.#trouble
  }

  /** Turns new changes away, and resolves when nothing is queued or under way. */
  async drain(): Promise<void> {
    this.#closed = true
    this.#pump()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
  }

  /** While in trouble no traffic may come that would show its end: a write for a trial does. */
  async probe(): Promise<void> {
    if (this.#trouble === undefined || this.#closed) return
    await this.#pool.query(TRIAL).then(
      () => {
        this.#trouble = undefined
      },
      () => undefined,
    )
  }

  #pump(): void {
    this.#scheduled = false
    while (this.#merging.length > 0 && this.#merges < MERGE_LANES) {
      this.#merges += 1
      const batch = this.#merging.splice(0, MAX_BATCH)
      this.#start(this.#runMerged(batch), () => {
        this.#merges -= 1
      })
    }
    while (this.#single.length > 0 && this.#singles < SINGLE_LANES) {
      const [one] = this.#single.splice(0, 1)
      if (one === undefined) break
      this.#singles += 1
      this.#start(this.#runSingle(one), () => {
        this.#singles -= 1
      })
    }
  }

  #start(work: Promise<void>, end: () => void): void {
    const tracked = work.finally(() => {
      this.#underWay.delete(tracked)
      end()
      this.#pump()
    })
    this.#underWay.add(tracked)
  }

  async #runMerged(batch: readonly Waiting[]): Promise<void> {
    const client = await this.#connect(batch)
    if (client === undefined) return
    try {
      const answer = await client.query(mergeChanges(batch.map((one) => one.change)))
      client.release()
      const refused = new Map((answer.rows as { n: number; step: number }[]).map((row) => [row.n, row.step]))
      this.#count(batch.length)
      for (const [n, one] of batch.entries()) {
        const step = refused.get(n)
        one.resolve(step === undefined ? { done: true } : { done: false, step, reason: 'guard' })
      }
    } catch (error) {
      const lost = unreachable(error)
      client.release(isSpent(error) ? asError(error) : undefined)
      if (lost) await this.#settleUnknown(pidOf(client), batch, error)
      else this.#single.push(...batch)
    }
  }

  async #runSingle(one: Waiting): Promise<void> {
    for (;;) {
      const client = await this.#connect([one])
      if (client === undefined) return
      const ended = await runTransaction(client, one.change)
      if ('outcome' in ended) {
        client.release()
        this.#count(1)
        one.resolve(ended.outcome)
        return
      }
      await giveBack(client, ended.failed)
      const lost = unreachable(ended.failed)
      if (lost && ended.committing) return this.#settleUnknown(pidOf(client), [one], ended.failed)
      if ((lost || isRetryable(ended.failed)) && one.tries < TRIES) one.tries += 1
      else return this.#refuse(one, ended.failed)
    }
  }

  /** Rejects all of them where there is no connection: nothing had been sent. */
  async #connect(batch: readonly Waiting[]): Promise<pg.PoolClient | undefined> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      this.#fail(batch, 'the database cannot be reached', error)
      return undefined
    }
  }

  /** Who was not kept is tried again, on its own; who cannot be asked after is not acknowledged. */
  async #settleUnknown(pid: number | undefined, batch: readonly Waiting[], error: unknown): Promise<void> {
    try {
      const { application } = this.#options
      const changes = batch.map((one) => one.change)
      const verdicts = await readBack(this.#pool, { pid, application }, changes)
      for (const [index, one] of batch.entries()) {
        if (verdicts[index] === true) one.resolve({ done: true })
        else if (verdicts[index] === false && one.tries < TRIES) {
          one.tries += 1
          this.#single.push(one)
        } else this.#fail([one], 'the connection to the database was lost', error)
      }
    } catch {
      this.#fail(batch, 'the database cannot be reached', error)
    }
  }

  #refuse(one: Waiting, cause: unknown): void {
    if (isFaultOfChange(cause)) one.reject(new StoreError('a change cannot be executed', { cause }))
    else this.#fail([one], 'the database cannot be written', cause)
  }

  #fail(batch: readonly Waiting[], what: string, cause: unknown): void {
    this.#trouble = what
    for (const one of batch) one.reject(new StoreError(what, { cause }))
    this.#options.onTrouble?.(what, cause)
  }

  #count(changes: number): void {
    this.#trouble = undefined
    this.stats.commits += 1
    this.stats.changes += changes
    this.stats.largestBatch = Math.max(this.stats.largestBatch, changes)
  }
}

/** Out of its transaction; a connection that cannot leave it is closed. */
async function giveBack(client: pg.PoolClient, failed: unknown): Promise<void> {
  if (isSpent(failed)) {
    client.release(asError(failed))
    return
  }
  await client.query('ROLLBACK').then(
    () => client.release(),
    (lost: unknown) => client.release(asError(lost)),
  )
}
