import { failureOf } from '../../cli/frame/failure.ts'

/** The result of one check. */
export interface Finding {
  readonly check: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** How to fix it. */
  readonly fix?: string | undefined
}

export const ok = (check: string, message: string): Finding => ({ check, level: 'ok', message })
export const warn = (check: string, message: string, fix: string): Finding => ({
  check,
  level: 'warn',
  message,
  fix,
})
export const fail = (check: string, message: string, fix: string): Finding => ({
  check,
  level: 'fail',
  message,
  fix,
})

/** Turns an error into a finding. Rethrows an interruption (Ctrl-C). */
export function failed(check: string, error: unknown, level: 'warn' | 'fail' = 'fail'): Finding {
  const { message, hint, exitCode } = failureOf(error)
  if (exitCode > 128) throw error
  return { check, level, message, fix: hint }
}
