/**
 * The result of the work. Rejects with the reason of the signal if that aborts first; the work goes on, and `onLate` gets its
 * result.
 */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  onLate?: (result: T) => unknown,
): Promise<T> {
  if (signal === undefined) return work
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([aborted, work])
  } catch (error) {
    if (onLate !== undefined) void work.then(onLate).catch(() => undefined)
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Waits `ms` for the work, even if it ignores its signal. Throws what the work throws, or `DeadlineError`. */
export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  // Rejects before the signal aborts: the work may fail at that moment with an error of its own.
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new DeadlineError()
      reject(error)
      deadline.abort(error)
    }, ms)
  })
  try {
    return await Promise.race([work(deadline.signal), late])
  } finally {
    clearTimeout(timer)
  }
}

export class DeadlineError extends Error {
  override readonly name = 'DeadlineError'
}
