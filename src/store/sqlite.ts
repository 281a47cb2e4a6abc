import { chmodSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { type Change, type Outcome, StoreError } from './change.ts'
import { createClock } from './clock.ts'
import { createBuilder } from './compile.ts'
import type { CommitOptions, CommitStats, Engine } from './engine.ts'
import { migrate } from './migrate.ts'
import { type Applier, commitBatch, createApplier, errcodeOf } from './sqlite-commit.ts'

const FULL = 13
const BUSY = 5
const MAX_BATCH = 256
/** Changes that may wait before new ones are turned away. */
const MAX_QUEUE = 4_096
/** Room to end credentials in when the disk is full. */
const BALLAST_BYTES = 2 * 1024 * 1024
const RETRY_MS = 1_000

export interface SqliteOptions {
  /** Holds `mayfly.db`; made 0700 where it is absent. */
  directory: string
  onTrouble?: (what: string, error: unknown) => void
}

type Cell = string | number | null

interface Waiting {
  change: Change
  urgent: boolean
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

interface Opened {
  db: DatabaseSync
  statement(sql: string): StatementSync
  applier: Applier
}

/** One file, one writer, one process: the lock is held for as long as it is open. */
export async function openSqlite(options: SqliteOptions): Promise<Engine> {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const opened = await open(join(options.directory, 'mayfly.db'))
  const newest = opened.db.prepare('SELECT at FROM audit WHERE id = (SELECT max(id) FROM audit)').get()
  const now = createClock(typeof newest?.['at'] === 'number' ? newest['at'] : 0)
  const writer = new Writer(options, opened)
  return {
    dialect: 'sqlite',
    build: createBuilder('sqlite'),
    stats: writer.stats,
    read: async <R>(query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
      const { sql, parameters } = query.compile()
      return writer.read<R>(sql, parameters as Cell[])
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
  readonly #options: SqliteOptions
  readonly #file: string
  readonly #ballast: string
  readonly #queue: Waiting[] = []
  #opened: Opened
  #scheduled = false
  #closed = false
  #recovering: NodeJS.Timeout | undefined
  generation = 0
  trouble: string | undefined

  constructor(options: SqliteOptions, opened: Opened) {
    this.#options = options
    this.#opened = opened
    this.#file = join(options.directory, 'mayfly.db')
    this.#ballast = join(options.directory, 'ballast')
    this.#layBallast()
  }

  read<R>(sql: string, params: readonly Cell[]): R[] {
    if (this.#closed) throw new StoreError('the store is closed')
    try {
      return this.#opened.statement(sql).all(...params) as R[]
    } catch (cause) {
      throw new StoreError('the database cannot be read', { cause })
    }
  }

  commit(change: Change, options: CommitOptions = {}): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (this.#closed) reject(new StoreError('the store is closed'))
      else if (this.#queue.length >= MAX_QUEUE) reject(new StoreError('too many changes are waiting'))
      else {
        this.#queue.push({ change, urgent: options.urgent ?? false, resolve, reject })
        this.#schedule()
      }
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
    if (batch.length === 0) return
    try {
      this.#settle(batch)
    } catch (error) {
      this.#fail(error, batch)
    }
  }

  #settle(batch: readonly Waiting[]): void {
    const changes = batch.map((one) => one.change)
    const outcomes = commitBatch(this.#opened.db, this.#opened.applier, changes)
    this.stats.commits += 1
    this.stats.changes += batch.length
    this.stats.largestBatch = Math.max(this.stats.largestBatch, batch.length)
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.done && changes[index]?.some((step) => step.op === 'forget')) this.generation += 1
    }
    for (const [index, outcome] of outcomes.entries()) batch[index]?.resolve(outcome)
  }

  /** Nothing of the batch is acknowledged. What a failed sync left in memory is not trusted: the file is opened anew. */
  #fail(error: unknown, batch: readonly Waiting[]): void {
    const full = errcodeOf(error) === FULL
    this.trouble = full ? 'the disk is full' : 'the database cannot be written'
    this.#options.onTrouble?.(this.trouble, error)
    if (full) rmSync(this.#ballast, { force: true })
    this.#reopen()
    for (const one of batch) one.reject(new StoreError(this.trouble, { cause: error }))
    this.#recovering ??= setInterval(() => this.#recover(), RETRY_MS).unref()
  }

  #reopen(): void {
    try {
      if (this.#opened.db.isOpen) this.#opened.db.close()
      this.#opened = connect(this.#file)
    } catch (error) {
      this.#options.onTrouble?.('the database cannot be opened', error)
    }
  }

  /** Writes for a trial, once a second, until that succeeds and the reserve is laid again. */
  #recover(): void {
    try {
      if (!this.#opened.db.isOpen) this.#opened = connect(this.#file)
      this.#opened.db.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('trial', '')")
      if (!this.#layBallast()) return
      this.trouble = undefined
      clearInterval(this.#recovering)
      this.#recovering = undefined
    } catch {
      this.#reopen()
    }
  }

  /** False when there is no room for it. */
  #layBallast(): boolean {
    try {
      if (existsSync(this.#ballast) && statSync(this.#ballast).size === BALLAST_BYTES) return true
      writeFileSync(this.#ballast, Buffer.alloc(BALLAST_BYTES), { mode: 0o600 })
      return true
    } catch {
      rmSync(this.#ballast, { force: true })
      return false
    }
  }
}

function connect(file: string): Opened {
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    db.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON',
    )
    db.exec('PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; BEGIN IMMEDIATE; COMMIT')
    const mode = db.prepare('PRAGMA synchronous').get()?.['synchronous']
    const journal = db.prepare('PRAGMA journal_mode').get()?.['journal_mode']
    if (mode !== 2 || journal !== 'wal')
      throw new Error('SQLite did not accept journal_mode=WAL and synchronous=FULL')
  } catch (error) {
    db.close()
    if (errcodeOf(error) === BUSY)
      throw new Error(`another process holds ${file}: only one Mayfly may use a data directory`)
    throw error
  }
  chmodSync(file, 0o600)
  const statements = new Map<string, StatementSync>()
  const statement = (sql: string): StatementSync => {
    let prepared = statements.get(sql)
    if (prepared === undefined) {
      if (statements.size >= 512) statements.clear()
      prepared = db.prepare(sql)
      statements.set(sql, prepared)
    }
    return prepared
  }
  let applier: Applier | undefined
  return {
    db,
    statement,
    get applier() {
      applier ??= createApplier(statement)
      return applier
    },
  }
}

async function open(file: string): Promise<Opened> {
  const opened = connect(file)
  await migrate({
    dialect: 'sqlite',
    version: async () => Number(opened.db.prepare('PRAGMA user_version').get()?.['user_version'] ?? 0),
    apply: async (statements, version) => {
      opened.db.exec(`BEGIN IMMEDIATE; ${statements.join(';\n')}; PRAGMA user_version = ${version}; COMMIT`)
    },
  })
  return opened
}
