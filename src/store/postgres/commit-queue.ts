import type pg from 'pg'
import type { Change, Outcome } from '../engine/change.ts'
import type { CommitStats } from '../engine/engine.ts'
import { freshener } from '../engine/fresh.ts'
import { requireStorable } from '../engine/run.ts'
import { StoreError } from '../errors.ts'
import { asError, isLockTimeout, isRetryable, isSpent, isUnreachable, toStoreError } from './errors.ts'
import { findCommitted, TRIAL } from './lost-commit.ts'
import { isMergeable, type MergedRefusal, Merger } from './merge.ts'
import { pidOf } from './requirements.ts'
import { runTransaction } from './transaction.ts'

const MAX_BATCH = 512
const MAX_QUEUE = 4_096
/** Merged statements at a time: while one syncs, the next one fills. */
const MAX_MERGED = 2
/** Changes that run in their own transactions at a time; two of these lanes may wait for locked rows. */
const MAX_SINGLE = 4
/** Connections that the queue can use at once. */
export const COMMIT_CONNECTIONS = MAX_MERGED + MAX_SINGLE
const MAX_RETRIES = 5

interface Waiting {
  change: Change
  retries: number
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

/** Changes that met a locked row, which wait for it one after the other. */
interface Lane {
  readonly waiting: Waiting[]
  isRunning: boolean
}

export interface CommitQueueOptions {
  /** The application name of this node's sessions, which no other node uses. */
  application: string
  /** Epoch ms on the database's clock. */
  now(): number
  onTrouble?: ((what: string, error: unknown) => void) | undefined
}

/**
 * The changes of one node that wait to be committed. Changes that only guard and insert are merged, a batch into one
 * statement; every other change has its own transaction. Another node may stop in the middle of a transaction and keep its
 * rows locked until PostgreSQL ends its session, so changes that meet a locked row wait in one lane, and hold up no other.
 * Changes that raise the generation all need its row, and a slow disk is enough to make them wait: they have their own lane.
 */
export class CommitQueue {
  readonly stats: CommitStats = { commits: 0, changes: 0, largestBatch: 0 }
  readonly #pool: pg.Pool
  readonly #options: CommitQueueOptions
  readonly #merger = new Merger()
  readonly #mergeable: Waiting[] = []
  readonly #single: Waiting[] = []
  readonly #locked: Lane = { waiting: [], isRunning: false }
  readonly #raising: Lane = { waiting: [], isRunning: false }
  readonly #running = new Set<Promise<void>>()
  #mergedRunning = 0
  #singleRunning = 0
  #isScheduled = false
  #isClosed = false
  #isProbing = false
  #trouble: string | undefined

  constructor(pool: pg.Pool, options: CommitQueueOptions) {
    this.#pool = pool
    this.#options = options
  }

  trouble(): string | undefined {
    return this.#trouble
  }

  /** During trouble there may be no change whose success would show that it is over, so try a write. */
  async probe(): Promise<void> {
    if (this.#trouble === undefined || this.#isClosed || this.#isProbing) return
    this.#isProbing = true
    await this.#pool.query(TRIAL).then(
      () => this.#worksAgain(),
      () => undefined,
    )
    this.#isProbing = false
  }

  #worksAgain(): void {
    if (this.#trouble !== undefined) this.#options.onTrouble?.('the database can be written again', undefined)
    this.#trouble = undefined
  }

  // Queue.

  commit = async (change: Change): Promise<Outcome> => {
    requireStorable(change)
    if (this.#isClosed) throw new StoreError('the store is closed')
    const queues = [this.#mergeable, this.#single, this.#locked.waiting, this.#raising.waiting]
    if (queues.reduce((sum, { length }) => sum + length, 0) >= MAX_QUEUE)
      throw new StoreError('too many changes are waiting')
    return new Promise((resolve, reject) => {
      const queue = isMergeable(change) ? this.#mergeable : this.#single
      queue.push({ change, retries: 0, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      setImmediate(() => this.#startWork())
    })
  }

  /** Refuses new changes, and resolves when none is queued or running. */
  async drain(): Promise<void> {
    this.#isClosed = true
    this.#startWork()
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  // Batch and write.

  #startWork(): void {
    this.#isScheduled = false
    while (this.#mergeable.length > 0 && this.#mergedRunning < MAX_MERGED) {
      this.#mergedRunning += 1
      const batch = this.#mergeable.splice(0, MAX_BATCH)
      this.#track(this.#runMerged(batch), () => {
        this.#mergedRunning -= 1
      })
    }
    for (const lane of [this.#locked, this.#raising]) {
      if (lane.waiting.length === 0 || lane.isRunning || this.#singleRunning >= MAX_SINGLE) continue
      lane.isRunning = true
      this.#singleRunning += 1
      this.#track(this.#runLocked(lane.waiting.splice(0, MAX_BATCH)), () => {
        lane.isRunning = false
        this.#singleRunning -= 1
      })
    }
    while (this.#singleRunning < MAX_SINGLE) {
      const one = this.#single.shift()
      if (one === undefined) break
      this.#singleRunning += 1
      this.#track(this.#runSingle(one), () => {
        this.#singleRunning -= 1
      })
    }
  }

  #track(work: Promise<void>, onEnd: () => void): void {
    const tracked = work.finally(() => {
      this.#running.delete(tracked)
      onEnd()
      this.#startWork()
    })
    this.#running.add(tracked)
  }

  /** The merged ones first: the rest may end what they guard. */
  async #runLocked(batch: readonly Waiting[]): Promise<void> {
    const merged = batch.filter(({ change }) => isMergeable(change))
    if (merged.length > 0) await this.#runMerged(merged, true)
    for (const one of batch) if (!merged.includes(one)) await this.#runSingle(one, true)
  }

  async #runMerged(batch: readonly Waiting[], waits = false): Promise<void> {
    const client = await this.#connect(batch)
    if (client === undefined) return
    try {
      const sentAt = this.#freshen(batch)
      const changes = batch.map((one) => one.change)
      const answer = await client.query(this.#merger.merge(changes, sentAt, waits))
      client.release()
      const refused = new Map((answer.rows as MergedRefusal[]).map((row) => [row.n, row]))
      this.#count(batch.length)
      for (const [n, one] of batch.entries()) {
        const refusal = refused.get(n)
        if (refusal === undefined) one.resolve({ done: true })
        else if (one.change[refusal.step]?.op === 'token') this.#single.push(one)
        else if (refusal.locked && !waits) this.#locked.waiting.push(one)
        else one.resolve({ done: false, step: refusal.step, reason: 'guard' })
      }
    } catch (error) {
      client.release(isSpent(error) ? asError(error) : undefined)
      if (isUnreachable(error)) await this.#resolveLost(client, batch, error)
      else if (waits && isLockTimeout(error)) this.#waitAgain(batch, error)
      // One of them spoilt the statement: now each gets its own transaction.
      else this.#single.push(...batch)
    }
  }

  #freshen(batch: readonly Waiting[]): number {
    const now = this.#options.now()
    const fresh = freshener(now)
    for (const one of batch) one.change = fresh(one.change)
    return now
  }

  #waitAgain(batch: readonly Waiting[], error: unknown): void {
    for (const one of batch) {
      if (one.retries === MAX_RETRIES) this.#fail([one], error)
      else {
        one.retries += 1
        this.#locked.waiting.push(one)
      }
    }
  }

  async #runSingle(one: Waiting, waits = false): Promise<void> {
    for (;;) {
      const client = await this.#connect([one])
      if (client === undefined) return
      const begun = () => {
        this.#freshen([one])
        return one.change
      }
      const ended = await runTransaction(client, begun, waits)
      if ('outcome' in ended) {
        client.release()
        this.#count(1)
        one.resolve(ended.outcome)
        return
      }
      const { failed, committing, at } = ended
      await giveBack(client, failed)
      if (!waits && isLockTimeout(failed)) {
        const lane = at === 'invalidate' ? this.#raising : this.#locked
        lane.waiting.push(one)
        return
      }
      const isLost = isUnreachable(failed)
      if (isLost && committing) return this.#resolveLost(client, [one], failed)
      if (one.retries === MAX_RETRIES || !(isLost || isRetryable(failed))) return this.#fail([one], failed)
      one.retries += 1
    }
  }

  /** Fails the batch when there is no connection: nothing has been sent. */
  async #connect(batch: readonly Waiting[]): Promise<pg.PoolClient | undefined> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      this.#fail(batch, error)
      return undefined
    }
  }

  // Recover after a failure.

  /** Retry uncommitted changes one by one; fail those whose outcome is unknown. */
  async #resolveLost(client: pg.PoolClient, batch: readonly Waiting[], error: unknown): Promise<void> {
    const session = { pid: pidOf(client), application: this.#options.application }
    try {
      const changes = batch.map((one) => one.change)
      const committed = await findCommitted(this.#pool, session, changes)
      for (const [index, one] of batch.entries()) {
        if (committed[index] === true) one.resolve({ done: true })
        else if (committed[index] === false && one.retries < MAX_RETRIES) {
          one.retries += 1
          this.#single.push(one)
        } else this.#fail([one], error)
      }
    } catch {
      this.#fail(batch, error)
    }
  }

  #fail(batch: readonly Waiting[], cause: unknown): void {
    const error = toStoreError(cause, 'written')
    for (const one of batch) one.reject(error)
    if (!(error instanceof StoreError)) return
    // Once for each state: while a database is away, every change fails.
    if (this.#trouble !== error.detail) this.#options.onTrouble?.(error.detail, cause)
    this.#trouble = error.detail
  }

  #count(changes: number): void {
    this.#worksAgain()
    this.stats.commits += 1
    this.stats.changes += changes
    this.stats.largestBatch = Math.max(this.stats.largestBatch, changes)
  }
}

/** Ends the transaction. A connection that cannot do that is closed. */
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
