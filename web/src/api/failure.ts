import { MayflyError, UnreachableError } from '../../../src/client/errors.ts'
import { NotConfirmed } from './confirm.ts'

/** What a person is told of a failure: what happened, what to do, and what to quote to an administrator. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly requestId: string | undefined
}

/** The one translator of errors. Every failure is said once: in the form that caused it, or else as a notice. */
export function failureOf(error: unknown): Failure {
  if (error instanceof MayflyError)
    return { code: error.code, message: error.message, requestId: error.requestId }
  if (error instanceof UnreachableError)
    return {
      code: 'unreachable',
      message: error.mayHaveArrived
        ? 'No answer came, so it may have been carried out. Look before you try again.'
        : 'The server cannot be reached. Nothing was sent; try again.',
      requestId: undefined,
    }
  if (error instanceof DOMException && error.name === 'NotAllowedError')
    return {
      code: 'passkey',
      message: 'The passkey was not used: it was cancelled, or took too long. Nothing was changed.',
      requestId: undefined,
    }
  if (error instanceof NotConfirmed)
    return {
      code: 'not_confirmed',
      message: 'You did not confirm it. Nothing was changed.',
      requestId: undefined,
    }
  return {
    code: 'failed',
    message: error instanceof Error ? error.message : String(error),
    requestId: undefined,
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof MayflyError && error.status === 404
