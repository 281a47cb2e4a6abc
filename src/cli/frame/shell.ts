import { CliError } from './failure.ts'

/** One word for any POSIX shell, always in quotes. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** One word for any POSIX shell, in quotes only where it needs them. */
export function shellWord(text: string): string {
  return /^[\w.,:/@%+=-]+$/.test(text) ? text : shellQuote(text)
}

/** Throws `CliError` for a value with a NUL byte, which no shell can hold. */
export function exportLine(name: string, value: string): string {
  if (!value.includes('\0')) return `export ${name}=${shellQuote(value)}`
  throw new CliError('not_text', `The value of ${name} contains a NUL byte.`, { hint: 'Use `-o json`.' })
}
