import { userInfo } from 'node:os'
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

const systemCode = (error: unknown) =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''

/** Why there is no data directory, with the command that makes it. */
export function cannotMake(directory: string, error: unknown): string {
  switch (systemCode(error)) {
    case 'EACCES':
    case 'EPERM':
      return `${directory} does not exist, and this user may not make it. Run: sudo install -d -m 700 -o ${ownName()} ${directory}`
    case 'EROFS':
      return `${directory} does not exist, and its file system is read-only here. Run: sudo install -d -m 700 -o ${ownName()} ${directory}; in a systemd unit, set StateDirectory`
    case 'EEXIST':
    case 'ENOTDIR':
      return `${directory} is not a directory, or is inside a file. Name another with --data-dir`
    default:
      return `${directory} cannot be made: ${error instanceof Error ? error.message : String(error)}`
  }
}

/** For a file in the data directory that belongs to another user; undefined for any other error. */
export function notPermitted(directory: string, error: unknown): string | undefined {
  if (!['EACCES', 'EPERM'].includes(systemCode(error))) return undefined
  const { path } = error as { path?: unknown }
  return `this user may not use ${typeof path === 'string' ? path : directory}. Run: sudo chown -R ${ownName()} ${directory}`
}

function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.() ?? 'mayfly')
  }
}
