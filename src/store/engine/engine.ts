import type { Compilable, Kysely } from 'kysely'
import type { Tables } from '../schema/rows.ts'
import type { Change, Outcome } from './change.ts'

export type Dialect = 'sqlite' | 'postgres'

export interface CommitOptions {
  /** Ends something: still done when the disk is full, out of the reserve. */
  urgent?: boolean
  /** Large, and nobody waits for it: SQLite commits it by itself, in turns with all that somebody waits for. */
  bulk?: boolean
}

/** What is counted for `/metrics`. */
export interface CommitStats {
  commits: number
  changes: number
  largestBatch: number
}

/** A database. The families of `store/` are written against this and never learn which one it is. */
export interface Engine {
  readonly dialect: Dialect
  /** Builds and compiles; never executes. */
  readonly build: Kysely<Tables>
  readonly stats: CommitStats
  read<R>(query: Compilable<R>): Promise<R[]>
  /** A hot query, written once with `?`; `prepare` it at start. */
  prepare<R>(sql: string): (params: readonly (string | number | null)[]) => Promise<R[]>
  /** Durable when it resolves with `done: true`. Throws `StoreError` when the store cannot be written. */
  commit(change: Change, options?: CommitOptions): Promise<Outcome>
  /** Rises with every `invalidate`, on whichever node; the value was true at some moment after the call. */
  generation(): number | Promise<number>
  /** Epoch ms on the store's one clock. */
  now(): number
  /** Undefined when fit to write, else why not. */
  trouble(): string | undefined
  close(): Promise<void>
}
