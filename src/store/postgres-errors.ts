function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return codeOf(error) === '23505'
}

/** Serialisation failure, deadlock, lock not available: the same change may well succeed on the next try. */
export function isRetryable(error: unknown): boolean {
  return ['40001', '40P01', '55P03'].includes(codeOf(error) ?? '')
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
