import type { Table, Tables } from '../schema/rows.ts'

export type Value = string | number | null

/** Data that nodes keep in memory: `backends`, `keys` (the issuer's), or everything about one agent, by its id. */
export type Topic = string

/**
 * One step of a change. Steps run in order; the change happens whole or not at all.
 * - `guard`: the row is alive (`ended_at` null) and still has this version; it stays so until the commit.
 * - `token`: the access token has not expired and is not revoked, its key verifies, and its agent is alive; all but the
 *   expiry stays so until the commit.
 * - `insert`: one row. `movable`: an audit entry whose id may get the time at which it is sent (`fresh.ts`).
 * - `run`: a compiled statement that must touch exactly `rows` rows (`'any'`: any number). `timeAt`: the parameter that is
 *   the time in the ids of the entries that it inserts, as `movable`.
 * - `invalidate`: what every node has cached of `topic` is stale from the moment of the commit; without a topic,
 *   everything is.
 */
export type Step =
  | {
      readonly op: 'guard'
      readonly table: 'agents' | 'backends' | 'runs'
      readonly id: string
      readonly version: number
    }
  | {
      readonly op: 'token'
      readonly jti: string
      readonly kid: string
      readonly agentId: string
      readonly expiresAt: number
    }
  | {
      [T in Table]: {
        readonly op: 'insert'
        readonly table: T
        readonly row: Tables[T]
        readonly movable?: true
      }
    }[Table]
  | {
      readonly op: 'run'
      readonly sql: string
      readonly params: readonly Value[]
      readonly rows: number | 'any'
      readonly timeAt?: number
    }
  | { readonly op: 'invalidate'; readonly topic?: Topic }

export type Change = readonly Step[]

/**
 * `refused`: the step at `step` found the world changed (a guard failed, a row count differed, a unique name
 * was taken); nothing of this change was kept.
 */
export type Outcome =
  | { readonly done: true }
  | { readonly done: false; readonly step: number; readonly reason: 'guard' | 'rows' | 'unique' }
