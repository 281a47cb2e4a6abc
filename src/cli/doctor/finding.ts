import { failureOf } from '../frame/failure.ts'

/** What `doctor` found about one thing. */
export interface Finding {
  readonly check: string
  readonly level: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** How to mend it. */
  readonly mend?: string
}

export const ok = (check: string, message: string): Finding => ({ check, level: 'ok', message })
export const warn = (check: string, message: string, mend: string): Finding => ({
  check,
  level: 'warn',
  message,
  mend,
})
export const fail = (check: string, message: string, mend: string): Finding => ({
  check,
  level: 'fail',
  message,
  mend,
})

/** Any error as a finding; one from outside (Ctrl-C) is thrown on. */
export function failed(check: string, error: unknown, level: 'warn' | 'fail' = 'fail'): Finding {
  const { message, hint, exitCode } = failureOf(error)
  if (exitCode > 128) throw error
  return { check, level, message, ...(hint === undefined ? {} : { mend: hint }) }
}
