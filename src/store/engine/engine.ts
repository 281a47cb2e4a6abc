import type { Compilable, Kysely } from 'kysely'
import type { Tables } from '../schema/rows.ts'
import type { Change, Outcome, Topic } from './change.ts'

export type Dialect = 'sqlite' | 'postgres'

export interface CommitOptions {
  /** Ends something: on a full disk it still succeeds, from the reserve. */
  urgent?: boolean
  /** Large, without a waiting caller: SQLite commits it on its own, alternating with changes that callers wait for. */
  bulk?: boolean
}

/** Counters for `/metrics`. */
export interface CommitStats {
  commits: number
  changes: number
  largestBatch: number
}

/** The differences between the two databases, besides their SQL. */
export interface Traits {
  /** Other nodes may work with the same rows. SQLite has one process. */
  readonly hasOtherNodes: boolean
  /**
   * Credentials that one commit ends. On SQLite even the largest rows and entries of a slice fit into the reserve for a full
   * disk (ADR 0023), and requests wait for each slice; on PostgreSQL larger slices save round trips.
   */
  readonly endSlice: number
  /** As `endSlice`, for credentials without an upstream that have expired. */
  readonly expireSlice: number
}

/** A database. The tables in `store/tables/` use this interface on both databases. */
export interface Engine extends Traits {
  readonly dialect: Dialect
  /** Builds and compiles queries; executes none. */
  readonly build: Kysely<Tables>
  readonly stats: CommitStats
  read<R>(query: Compilable<R>): Promise<R[]>
  /** As `read`, for a query that may return very many rows: other work gets its turn between the slices. */
  scan<R>(query: Compilable<R>): AsyncIterable<R[]>
  /** A hot query, written once with `?`; `prepare` it at start. */
  prepare<R>(sql: string): (params: readonly (string | number | null)[]) => Promise<R[]>
  /** Durable when it resolves with `done: true`. Throws `StoreError` when the store cannot be written. */
  commit(change: Change, options?: CommitOptions): Promise<Outcome>
  /** Rises with every `invalidate` on any node. The value was current at some moment after the call. */
  generation(): number | Promise<number>
  /** The generation at which `topic` last changed; as new as the latest answer of `generation`. */
  changedAt(topic: Topic): number
  /** Epoch ms on the store's one clock. */
  now(): number
  /** Epoch ms: every audit entry whose id is of an earlier time is there, or never will be (`tables/audit/horizon.ts`). */
  horizon(): Promise<number>
  /** Undefined when the store can write; otherwise the reason why not. */
  trouble(): string | undefined
  close(): Promise<void>
}
