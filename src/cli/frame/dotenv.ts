import { shellQuote } from '../../domain/formats/shell-word.ts'
import { CliError } from './failure.ts'

/**
 * One line of a dotenv file for `name`, which Node, python-dotenv and a shell read alike. They differ in what a
 * backslash and a dollar sign mean in double quotes, and python-dotenv fills in `${…}` in single quotes, too. Throws
 * `CliError` for a value that no notation carries to all three.
 */
export function dotenvLine(name: string, value: string): string {
  if (!/['\r\0]|\\\\|\\$|\$\{/.test(value)) return `${name}='${value}'`
  if (!/["\\$`\r\0]/.test(value)) return `${name}="${value}"`
  throw new CliError('not_dotenv', `Programs that read dotenv files would misread the value of ${name}.`, {
    hint: 'Use `-o env` or `-o json`.',
  })
}

/** A line for each variable. */
export function variableLines(
  variables: Readonly<Record<string, string>>,
  lineOf: (name: string, value: string) => string,
): string {
  return Object.entries(variables)
    .map(([name, value]) => lineOf(name, value))
    .join('\n')
}

/** Throws `CliError` for a value with a NUL byte, which no shell can hold. */
export function exportLine(name: string, value: string): string {
  if (!value.includes('\0')) return `export ${name}=${shellQuote(value)}`
  throw new CliError('not_text', `The value of ${name} contains a NUL byte.`, { hint: 'Use `-o json`.' })
}
