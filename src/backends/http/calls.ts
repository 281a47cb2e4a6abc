import type { RecipeRequest } from './schema.ts'
import type { Vars } from './template.ts'

export type Config = Readonly<Record<string, unknown>>

/** The reply to a request that succeeded, or whose status the caller expects. */
export interface Reply {
  readonly status: number
  /** Throws `unavailable` for a reply that is not JSON. */
  json(): unknown
}

export interface Call {
  readonly vars: Vars
  /** The variables of each scope, for `$each`. */
  readonly each?: readonly Vars[]
  /** Statuses that are not faults, besides those of success. */
  readonly expected?: readonly number[]
  readonly signal: AbortSignal
}

export type Send = (request: RecipeRequest, call: Call) => Promise<Reply>
