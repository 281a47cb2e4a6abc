import { StoreError } from '../errors.ts'

/** SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const UNIQUE = '23505'
const LOCK_NOT_AVAILABLE = '55P03'
/** Serialization failure, deadlock, lock not available. */
const RETRYABLE = new Set(['40001', '40P01', LOCK_NOT_AVAILABLE])
/** The driver's `query_timeout`, which has no code. */
const READ_TIMEOUT = 'Query read timeout'
/** Bad data, violated constraint, bad statement: the same whatever state the server is in. */
const CLASSES_OF_THE_STATEMENT = new Set(['22', '23', '42'])

/** The SQLSTATE, or the code of the system's error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === UNIQUE
}

/** Another transaction held a row for longer than this one was to wait. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_NOT_AVAILABLE
}

/** The same change may succeed on the next try. */
export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(codeOf(error) ?? '')
}

/** The server or the driver waited too long: for a lock, or for a standby to confirm a commit. */
export function isTimeout(error: unknown): boolean {
  return isLockTimeout(error) || (error instanceof Error && error.message === READ_TIMEOUT)
}

/** A bug of ours: the server can never execute this statement. */
export function isFaultOfStatement(error: unknown): boolean {
  const code = codeOf(error)
  return code?.length === 5 && CLASSES_OF_THE_STATEMENT.has(code.slice(0, 2))
}

/** A prepared statement no longer fits, because its table has gained a column: feature_not_supported. Nothing was executed. */
export function isPlanStale(error: unknown): boolean {
  return codeOf(error instanceof StoreError ? error.cause : error) === '0A000'
}

/** Another node created the same object at the same moment: unique_violation, duplicate_table, duplicate_object. */
export function isCreationRace(error: unknown): boolean {
  return [UNIQUE, '42P07', '42710'].includes(codeOf(error) ?? '')
}

/** The other end does not accept the start parameters of the connection: protocol_violation. */
export function isStartRefused(error: unknown): boolean {
  return codeOf(error) === '08P01'
}

/**
 * The connection was lost, so if COMMIT had been sent, its outcome is unknown. SQLSTATE classes 08 and 57P0x, and
 * every error without a five-character SQLSTATE (sockets, time-outs of the driver).
 */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error)
  return (
    code === undefined ||
    code.length !== 5 ||
    code.startsWith('08') ||
    code.startsWith('57P') ||
    /^E[A-Z]/.test(code)
  )
}

/**
 * The connection is of no more use: it is lost, or its session is read-only (25006, read_only_sql_transaction). A
 * session stays read-only if its server was a standby, or was being switched over, when the session began.
 */
export function isSpent(error: unknown): boolean {
  return isUnreachable(error) || codeOf(error) === '25006'
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** The error that callers of the store get. A bug of ours stays as it is. */
export function toStoreError(cause: unknown, failed: 'read' | 'written'): Error {
  if (cause instanceof Error && isFaultOfStatement(cause)) return cause
  const what = isUnreachable(cause) ? 'the database cannot be reached' : `the database cannot be ${failed}`
  return new StoreError(what, { cause })
}
