import { shellQuote } from '../../domain/shell-word.ts'
import { CliError } from './failure.ts'

/** Throws `CliError` for a value with a NUL byte, which no shell can hold. */
export function exportLine(name: string, value: string): string {
  if (!value.includes('\0')) return `export ${name}=${shellQuote(value)}`
  throw new CliError('not_text', `The value of ${name} contains a NUL byte.`, { hint: 'Use `-o json`.' })
}
