import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import type { Change, Outcome } from '../engine/change.ts'
import { createClock } from '../engine/clock.ts'
import { createBuilder } from '../engine/compile.ts'
import type { CommitOptions, CommitStats, Engine } from '../engine/engine.ts'
import { asValue, requireStorable } from '../engine/run.ts'
import { StoreError, StoreRefused } from '../errors.ts'
import { cacheStatements } from './file.ts'
import type { Message, Request } from './worker.ts'
import type { Result } from './writer.ts'

const MAX_BATCH = 256
/** Batches that may be with the writer: the one that it writes, and the one that it goes on with. */
const AHEAD = 2
/** So many changes are worth a batch at once; fewer wait for the end of the turn, or for the writer. */
const WORTH_SENDING = 32
/** Changes that may wait before new ones are turned away. */
const MAX_QUEUE = 4_096

export interface SqliteOptions {
  /** Holds `mayfly.db`; made 0700 where it is absent. */
  directory: string
  onTrouble?: (what: string, error: unknown) => void
}

type Cell = string | number | null

interface Batch {
  readonly changes: readonly Waiting[]
  readonly bulk: boolean
}

interface Waiting {
  readonly change: Change
  readonly urgent: boolean
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

/** One file, one writer, one process: the directory is locked for as long as it is open. */
export async function openSqlite(options: SqliteOptions): Promise<Engine> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const file = join(options.directory, 'mayfly.db')
  const queue = new CommitQueue(options, file)
  const newestAt = await queue.opened
  warnOfClock(newestAt - Date.now(), options)
  const reader = new Reader(file, () => queue.isQuiet())
  queue.beforeBatch = () => reader.release()
  return {
    dialect: 'sqlite',
    build: createBuilder('sqlite'),
    stats: queue.stats,
    read: async <R>(query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
      const { sql, parameters } = query.compile()
      return reader.read<R>(sql, parameters.map(asValue))
    },
    prepare:
      <R>(sql: string) =>
      async (params: readonly Cell[]) =>
        reader.read<R>(sql, params),
    commit: (change, commitOptions) => queue.commit(change, commitOptions),
    generation: () => queue.generation,
    now: createClock(newestAt),
    trouble: () => queue.trouble,
    close: async () => {
      await queue.close()
      reader.close()
    },
  }
}

/** Ahead of the newest entry by less than this is a clock that is merely being set, in ms. */
const CLOCK_SLACK_MS = 60_000

/** Time never goes back, so whatever is issued from now on ends later than it says, by everybody else's clock. */
function warnOfClock(behindMs: number, { onTrouble }: SqliteOptions): void {
  if (behindMs < CLOCK_SLACK_MS) return
  onTrouble?.(
    'the system clock is behind the newest audit entry, and time goes on from that one: credentials end later by as much. Set the clock; if the entry is wrong, restore a backup from before it',
    new Error(`behind by ${Math.round(behindMs / 1_000)} s`),
  )
}

/**
 * Reads what is committed, on the caller's thread. While no batch is with the writer nothing can change, and one
 * read transaction serves for many reads: taking the locks of each would cost ten times the look itself. It ends
 * before the next batch is sent, so that it is never stale and never keeps the journal from being emptied.
 */
class Reader {
  readonly #db: DatabaseSync
  readonly #statement: (sql: string) => StatementSync
  readonly #isQuiet: () => boolean
  #holding = false

  constructor(file: string, isQuiet: () => boolean) {
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
    this.#db.exec('PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY')
    this.#statement = cacheStatements(this.#db)
    this.#isQuiet = isQuiet
  }

  read<R>(sql: string, params: readonly Cell[]): R[] {
    if (!this.#db.isOpen) throw new StoreError('the store is closed')
    try {
      if (!this.#holding && this.#isQuiet()) {
        this.#db.exec('BEGIN')
        this.#holding = true
      }
      return this.#statement(sql).all(...params) as R[]
    } catch (cause) {
      this.release()
      throw new StoreError('the database cannot be read', { cause })
    }
  }

  release(): void {
    if (!this.#holding) return
    this.#holding = false
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}

/**
 * The changes that wait for the writer's thread. It is handed the next batch before it is done with one, so that
 * neither thread waits for the other while there is work for both.
 */
class CommitQueue {
  readonly stats: CommitStats = { commits: 0, changes: 0, largestBatch: 0 }
  /** Resolves with the time of the newest entry, in ms. */
  readonly opened: Promise<number>
  readonly #onTrouble: (what: string, error: unknown) => void
  readonly #worker: Worker
  readonly #queue: Waiting[] = []
  readonly #bulk: Waiting[] = []
  readonly #ended = Promise.withResolvers<void>()
  readonly #underWay: Batch[] = []
  #scheduled = false
  #wasBulk = false
  #closing = false
  generation = 0
  trouble: string | undefined
  beforeBatch: () => void = () => undefined

  constructor(options: SqliteOptions, file: string) {
    this.#onTrouble = options.onTrouble ?? (() => undefined)
    const name = import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js'
    this.#worker = new Worker(new URL(name, import.meta.url), {
      workerData: { directory: options.directory, file },
    })
    const opened = Promise.withResolvers<number>()
    this.opened = opened.promise
    this.#worker.on('message', (message: Message) => this.#hear(message, opened))
    this.#worker.on('error', (error) => this.#lose(error))
    this.#worker.on('exit', () => {
      opened.reject(new Error('the writer of the database ended'))
      this.#lose(new Error('the writer of the database ended'))
    })
  }

  async commit(change: Change, options: CommitOptions = {}): Promise<Outcome> {
    requireStorable(change)
    if (this.#closing) throw new StoreError('the store is closed')
    const queue = options.bulk === true ? this.#bulk : this.#queue
    if (queue.length >= MAX_QUEUE) throw new StoreError('too many changes are waiting')
    return new Promise((resolve, reject) => {
      queue.push({ change, urgent: options.urgent ?? false, resolve, reject })
      this.#schedule()
    })
  }

  /** Nothing is with the writer, nor will it touch the file by itself to mend it. */
  isQuiet(): boolean {
    return this.#underWay.length === 0 && this.trouble === undefined && !this.#closing
  }

  /** Commits what is queued, then lets go of the file. */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true
      this.#schedule()
    }
    await this.#ended.promise
  }

  /** Many go at once. Few wait for the end of the turn: by then all that arrive in it are in the queue. */
  #schedule(): void {
    if (this.#queue.length >= WORTH_SENDING) this.#send()
    else if (!this.#scheduled && this.#underWay.length === 0) {
      this.#scheduled = true
      setImmediate(() => {
        this.#scheduled = false
        this.#send()
      })
    }
  }

  #send(): void {
    if (this.#underWay.length >= AHEAD) return
    this.beforeBatch()
    const batch = this.#nextBatch()
    if (batch.changes.length > 0) {
      this.#underWay.push(batch)
      // Text crosses between threads for less than a structured clone of the objects takes.
      this.#tell({ batch: JSON.stringify(batch.changes.map(({ change, urgent }) => ({ change, urgent }))) })
    } else if (this.#closing && this.#underWay.length === 0) this.#tell({})
  }

  /** Bulk takes turns with the rest, and there is never more than one of it ahead of a request. */
  #nextBatch(): Batch {
    const bulk =
      this.#bulk.length > 0 &&
      !this.#underWay.some((one) => one.bulk) &&
      (this.#queue.length === 0 || !this.#wasBulk)
    this.#wasBulk = bulk
    return { changes: bulk ? this.#bulk.splice(0, 1) : this.#queue.splice(0, MAX_BATCH), bulk }
  }

  #tell(request: Request): void {
    this.#worker.postMessage(request)
  }

  #hear(message: Message, opened: PromiseWithResolvers<number>): void {
    switch (message.kind) {
      case 'open':
        this.trouble = message.trouble
        opened.resolve(message.newestAt)
        return
      case 'refused':
        this.#closing = true
        opened.reject(new StoreRefused(message.message))
        return
      case 'trouble':
        this.trouble = message.trouble
        if (message.trouble !== undefined) this.beforeBatch()
        this.#onTrouble(message.what, new Error(message.cause))
        return
      case 'done':
        this.trouble = message.trouble
        this.#settle(message.results)
        return
      case 'closed':
        this.#ended.resolve()
        return
      default: {
        const never: never = message
        throw new Error(`unknown message ${String(never)}`)
      }
    }
  }

  #settle(results: readonly Result[]): void {
    const batch = this.#underWay.shift()?.changes ?? []
    this.stats.commits += 1
    this.stats.changes += batch.length
    this.stats.largestBatch = Math.max(this.stats.largestBatch, batch.length)
    // Raised before anyone hears of it, so that who hears of it finds nothing stale.
    for (const [index, one] of batch.entries()) {
      if (isKept(results[index]) && one.change.some((step) => step.op === 'invalidate')) this.generation += 1
    }
    if (this.#queue.length + this.#bulk.length > 0 || this.#closing) this.#send()
    for (const [index, one] of batch.entries()) answer(one, results[index])
  }

  /** The thread is gone: nothing of what it had is acknowledged, and nothing more will be. */
  #lose(error: Error): void {
    const underWay = this.#underWay.splice(0).flatMap(({ changes }) => changes)
    const lost = [...underWay, ...this.#queue.splice(0), ...this.#bulk.splice(0)]
    if (this.#closing && lost.length === 0) {
      this.#ended.resolve()
      return
    }
    this.trouble = 'the writer of the database ended'
    this.#onTrouble(this.trouble, error)
    for (const one of lost) one.reject(new StoreError(this.trouble, { cause: error }))
    this.#closing = true
    this.#ended.resolve()
  }
}

function answer(one: Waiting, result: Result | undefined): void {
  if (result === undefined) one.reject(new StoreError('the writer did not answer'))
  else if ('failed' in result) one.reject(new StoreError(result.failed, { cause: result.cause }))
  else one.resolve(result)
}

function isKept(result: Result | undefined): boolean {
  return result !== undefined && !('failed' in result) && result.done
}
