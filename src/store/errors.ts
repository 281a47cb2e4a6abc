import { Problem } from '../domain/problems.ts'

/** The store does not open. The message names the fault and the operator's next step. */
export class StoreRefused extends Error {
  override readonly name = 'StoreRefused'
}

/**
 * The store cannot be read or written now; nothing was acknowledged. Callers answer `store_unavailable`. A statement
 * that the database can never execute is a bug instead, and stays the error of the database.
 */
export class StoreError extends Problem {
  override readonly name = 'StoreError'
  /** Why, for the log and `/readyz`. */
  declare readonly detail: string

  constructor(detail: string, options: { readonly cause?: unknown } = {}) {
    super('store_unavailable', { detail, retryAfterSeconds: 1, cause: options.cause })
  }
}
