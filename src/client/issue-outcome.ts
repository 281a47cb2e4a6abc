import { MayflyError, UnreachableError } from './errors.ts'

/** Whether the error of a request to issue says that nothing was issued. A 409 does not: the first request is still under way. */
export function isAnswer(error: unknown): boolean {
  if (error instanceof UnreachableError) return !error.mayHaveArrived
  return error instanceof MayflyError && error.code !== 'unexpected_reply' && error.status !== 409
}

/** For a repeated request, of which the first may have been carried out: the error must be about the request itself. */
export function isFinalAnswer(error: unknown): boolean {
  if (!(error instanceof MayflyError) || !isAnswer(error)) return false
  return error.status >= 400 && error.status < 500 && error.status !== 401 && error.status !== 429
}
