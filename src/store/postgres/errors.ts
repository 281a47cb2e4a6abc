/** SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const UNIQUE = '23505'
/** Serialisation failure, deadlock, lock not available. */
const RETRYABLE = new Set(['40001', '40P01', '55P03'])
/** Bad data, violated constraint, bad statement: the same whatever the state of the server. */
const CLASSES_OF_THE_CHANGE = new Set(['22', '23', '42'])

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === UNIQUE
}

/** The same change may well succeed on the next try. */
export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(codeOf(error) ?? '')
}

/** This change cannot be executed at all; the next one can. */
export function isFaultOfChange(error: unknown): boolean {
  const code = codeOf(error)
  return code?.length === 5 && CLASSES_OF_THE_CHANGE.has(code.slice(0, 2))
}

/** Another node created the same object in the same moment: unique_violation, duplicate_table, duplicate_object. */
export function isCreationRace(error: unknown): boolean {
  return [UNIQUE, '42P07', '42710'].includes(codeOf(error) ?? '')
}

/** Whoever answers does not take the parameters that a connection begins with: protocol_violation. */
export function isStartRefused(error: unknown): boolean {
  return codeOf(error) === '08P01'
}

/**
 * The connection went away, so whether a COMMIT was kept is unknown. SQLSTATE classes 08 and 57P0x, and
 * whatever has no five-character SQLSTATE (sockets, time-outs of the driver).
 */
export function unreachable(error: unknown): boolean {
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
 * Nothing more can be done with the connection: it is lost, or its session is read-only, as it stays when the server
 * behind it was a standby or was being switched over when it was opened (25006, read_only_sql_transaction).
 */
export function isSpent(error: unknown): boolean {
  return unreachable(error) || codeOf(error) === '25006'
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
