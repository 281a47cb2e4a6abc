import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Change, type Outcome, StoreError } from './change.ts'
import { createClock } from './clock.ts'
import { createBuilder } from './compile.ts'
import type { CommitOptions, CommitStats, Engine } from './engine.ts'
import { asValue, requireStorable } from './run.ts'
import { type Attempt, commitBatch } from './sqlite-commit.ts'
import { isDiskFull } from './sqlite-errors.ts'
import { type Ballast, connect, createBallast, emptyJournal, type OpenFile, openFile } from './sqlite-file.ts'

const MAX_BATCH = 256
/** Changes that may wait before new ones are turned away. */
const MAX_QUEUE = 4_096
const RETRY_MS = 1_000
/** Failed recoveries after which the file is opened anew even if its journal cannot be emptied first. */
const PATIENCE = 5
const DISK_FULL = 'the disk is full'

export interface SqliteOptions {
  /** Holds `mayfly.db`; made 0700 where it is absent. */
  directory: string
  onTrouble?: (what: string, error: unknown) => void
}

type Cell = string | number | null

interface Waiting {
  readonly change: Change
  readonly urgent: boolean
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

/** One file, one writer, one process: the lock is held for as long as it is open. */
export async function openSqlite(options: SqliteOptions): Promise<Engine> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const file = join(options.directory, 'mayfly.db')
  const opened = await openFile(file)
  const newest = opened.db.prepare('SELECT at FROM audit WHERE id = (SELECT max(id) FROM audit)').get()
  const now = createClock(typeof newest?.['at'] === 'number' ? newest['at'] : 0)
  const ballast = createBallast(options.directory)
  const writer = new Writer(file, opened, ballast, options.onTrouble)
  return {
    dialect: 'sqlite',
    build: createBuilder('sqlite'),
    stats: writer.stats,
    read: async <R>(query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
      const { sql, parameters } = query.compile()
      return writer.read<R>(sql, parameters.map(asValue))
    },
    prepare:
      <R>(sql: string) =>
      async (params: readonly Cell[]) =>
        writer.read<R>(sql, params),
    commit: (change, commitOptions) => writer.commit(change, commitOptions),
    generation: () => writer.generation,
    now,
    trouble: () => writer.trouble,
    close: async () => writer.close(),
  }
}

/** The open file and the queue of changes that share the next commit. */
class Writer {
  readonly stats: CommitStats = { commits: 0, changes: 0, largestBatch: 0 }
  readonly #file: string
  readonly #ballast: Ballast
  readonly #onTrouble: (what: string, error: unknown) => void
  readonly #queue: Waiting[] = []
  #opened: OpenFile
  #scheduled = false
  #closed = false
  #recovering: NodeJS.Timeout | undefined
  #doubtful = false
  #failedRecoveries = 0
  generation = 0
  trouble: string | undefined

  constructor(file: string, opened: OpenFile, ballast: Ballast, onTrouble: SqliteOptions['onTrouble']) {
    this.#file = file
    this.#opened = opened
    this.#ballast = ballast
    this.#onTrouble = onTrouble ?? (() => undefined)
    this.#begin()
  }

  /** What a failed sync of an earlier process may have left in the journal is made good before anything is added. */
  #begin(): void {
    try {
      emptyJournal(this.#opened.db)
      if (!this.#ballast.lay()) this.#enterTrouble(DISK_FULL, new Error('no room for the reserve'))
    } catch (error) {
      this.#doubt(error)
    }
  }

  read<R>(sql: string, params: readonly Cell[]): R[] {
    if (this.#closed) throw new StoreError('the store is closed')
    try {
      return this.#opened.statement(sql).all(...params) as R[]
    } catch (cause) {
      throw new StoreError('the database cannot be read', { cause })
    }
  }

  async commit(change: Change, options: CommitOptions = {}): Promise<Outcome> {
    requireStorable(change)
    if (this.#closed) throw new StoreError('the store is closed')
    if (this.#queue.length >= MAX_QUEUE) throw new StoreError('too many changes are waiting')
    return new Promise((resolve, reject) => {
      this.#queue.push({ change, urgent: options.urgent ?? false, resolve, reject })
      this.#schedule()
    })
  }

  /** Commits what is queued, then lets go of the file. */
  close(): void {
    while (this.#queue.length > 0) this.#flush()
    this.#closed = true
    clearInterval(this.#recovering)
    if (this.#opened.db.isOpen) this.#opened.db.close()
  }

  /** All requests that arrive in one turn of the event loop are in the queue by the time this runs. */
  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#scheduled = false
    let batch = this.#queue.splice(0, MAX_BATCH)
    if (this.#queue.length > 0) this.#schedule()
    if (this.trouble !== undefined) {
      for (const one of batch) if (!one.urgent) one.reject(new StoreError(this.trouble))
      batch = batch.filter((one) => one.urgent)
    }
    if (batch.length > 0) this.#settle(batch, true)
  }

  #settle(batch: readonly Waiting[], again: boolean): void {
    let attempts: Attempt[]
    try {
      const changes = batch.map((one) => one.change)
      attempts = commitBatch(this.#opened.db, this.#opened.applier, changes)
    } catch (error) {
      this.#fail(error, batch, again)
      return
    }
    this.stats.commits += 1
    this.stats.changes += batch.length
    this.stats.largestBatch = Math.max(this.stats.largestBatch, batch.length)
    const settled = batch.map((one, index) => ({ one, attempt: attempts[index] }))
    // Raised before anyone hears of it, so that who hears of it finds nothing stale.
    for (const { one, attempt } of settled) {
      if (isKept(attempt) && one.change.some((step) => step.op === 'forget')) this.generation += 1
    }
    for (const { one, attempt } of settled) {
      if (attempt === undefined || attempt instanceof Error)
        one.reject(new StoreError('a change cannot be executed', { cause: attempt }))
      else one.resolve(attempt)
    }
    if (this.trouble !== undefined) this.#keepRoom()
  }

  /** Nothing of the batch is acknowledged; what is urgent is tried once more in the room of the reserve. */
  #fail(error: unknown, batch: readonly Waiting[], again: boolean): void {
    const retried = isDiskFull(error) && again ? batch.filter((one) => one.urgent) : []
    for (const one of batch) {
      if (!retried.includes(one)) one.reject(new StoreError(troubleOf(error), { cause: error }))
    }
    this.#doubt(error)
    if (retried.length > 0) this.#settle(retried, false)
  }

  /** The file has failed: it is opened anew as soon as that can be done without loss. */
  #doubt(error: unknown): void {
    this.#doubtful = true
    if (isDiskFull(error)) this.#ballast.drop()
    this.#enterTrouble(troubleOf(error), error)
    try {
      this.#renew()
    } catch (cause) {
      this.#onTrouble('the database could not be opened anew', cause)
    }
  }

  /** On a full disk a journal that grows would use up the very room that is needed to empty it. */
  #keepRoom(): void {
    try {
      emptyJournal(this.#opened.db)
    } catch (error) {
      this.#onTrouble('the journal could not be emptied', error)
    }
  }

  #enterTrouble(what: string, error: unknown): void {
    this.trouble = what
    this.#recovering ??= setInterval(() => this.#recover(), RETRY_MS).unref()
    this.#onTrouble(what, error)
  }

  /**
   * The file opened anew, with an empty journal. Until the journal can be emptied the connection stays: in its
   * view the failed commit has not happened, while a new one would read it from the journal.
   */
  #renew(): void {
    const { db } = this.#opened
    if (db.isOpen) {
      try {
        emptyJournal(db)
      } catch (error) {
        this.#failedRecoveries += 1
        if (this.#failedRecoveries < PATIENCE) throw error
      }
      db.close()
    }
    this.#opened = connect(this.#file)
    emptyJournal(this.#opened.db)
    this.#failedRecoveries = 0
    this.#doubtful = false
  }

  /** Writes for a trial, once a second, until that succeeds and the reserve is laid again. */
  #recover(): void {
    try {
      if (this.#doubtful) this.#renew()
      this.#opened.db.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('trial', '')")
      if (!this.#ballast.lay()) return
      this.trouble = undefined
      clearInterval(this.#recovering)
      this.#recovering = undefined
    } catch (error) {
      this.#doubtful = true
      this.#onTrouble('the database still cannot be written', error)
    }
  }
}

function troubleOf(error: unknown): string {
  return isDiskFull(error) ? DISK_FULL : 'the database cannot be written'
}

function isKept(attempt: Attempt | undefined): boolean {
  return attempt !== undefined && !(attempt instanceof Error) && attempt.done
}
