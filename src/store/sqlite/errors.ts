import { StoreError } from '../errors.ts'

/** Result codes: https://www.sqlite.org/rescode.html. The low byte is the primary code. */
const PRIMARY = 0xff
const BUSY = 5
const FULL = 13
/** CORRUPT, NOTADB. */
const DAMAGED = new Set([11, 26])
const UNIQUE = new Set([2067, 1555])
/** ERROR (bad SQL), TOOBIG, CONSTRAINT, MISMATCH, RANGE: raised by the statement, not by the disk. */
const OF_THE_STATEMENT = new Set([1, 18, 19, 20, 25])

function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return UNIQUE.has(codeOf(error) ?? 0)
}

/** A bug of ours. Node throws a `TypeError` without a code for a value that it cannot bind. */
export function isFaultOfStatement(error: unknown): boolean {
  const code = codeOf(error)
  return code === undefined ? error instanceof TypeError : OF_THE_STATEMENT.has(code & PRIMARY)
}

export function isDiskFull(error: unknown): boolean {
  return ((codeOf(error) ?? 0) & PRIMARY) === FULL
}

export function isBusy(error: unknown): boolean {
  return ((codeOf(error) ?? 0) & PRIMARY) === BUSY
}

export function isDamaged(error: unknown): boolean {
  return DAMAGED.has((codeOf(error) ?? 0) & PRIMARY)
}

/** The error that callers get when a read fails. A bug of ours stays as it is. */
export function toReadError(cause: unknown): Error {
  if (cause instanceof Error && isFaultOfStatement(cause)) return cause
  return new StoreError('the database cannot be read', { cause })
}
