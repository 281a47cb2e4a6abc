import { failureOf } from '../../../src/cli/frame/failure.ts'
import { ActionError } from './runner.ts'

/** What went wrong, and what to do next, in one text. */
export function failureText(error: unknown): string {
  if (error instanceof ActionError) return error.message
  const { message, hint } = failureOf(error)
  return hint === undefined ? message : `${message} ${hint}`
}
