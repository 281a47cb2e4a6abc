/** Result codes: https://www.sqlite.org/rescode.html. The low byte is the primary code. */
const PRIMARY = 0xff
const BUSY = 5
const FULL = 13
const UNIQUE = new Set([2067, 1555])
/** ERROR (bad SQL), TOOBIG, CONSTRAINT, MISMATCH, RANGE: they are raised by the statement, not by the disk. */
const OF_THE_CHANGE = new Set([1, 18, 19, 20, 25])

function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return UNIQUE.has(codeOf(error) ?? 0)
}

/** A value that cannot be bound is a `TypeError` of Node's and has no code. */
export function isFaultOfChange(error: unknown): boolean {
  const code = codeOf(error)
  return code === undefined ? error instanceof TypeError : OF_THE_CHANGE.has(code & PRIMARY)
}

export function isDiskFull(error: unknown): boolean {
  return ((codeOf(error) ?? 0) & PRIMARY) === FULL
}

export function isBusy(error: unknown): boolean {
  return ((codeOf(error) ?? 0) & PRIMARY) === BUSY
}
