import { shellQuote } from '../frame/credential-variables.ts'
import type { KindField } from './fields.ts'
import { flagsOf } from './flags.ts'

/** The answers as flags for the shell, so that nobody has to answer twice. Secrets are not shown. */
export function asFlags(
  type: string,
  fields: readonly KindField[],
  config: Readonly<Record<string, unknown>>,
): string {
  return flagsOf(type, fields)
    .filter(({ field, file }) => config[field.name] !== undefined && file === field.secret)
    .flatMap(({ flag, field }) => {
      const value = config[field.name]
      if (field.secret) return [`--${flag} FILE`]
      if (typeof value === 'boolean') return [value ? `--${flag}` : `--no-${flag}`]
      const values = Array.isArray(value) && field.type !== 'json' ? value : [value]
      return values.map((one) => `--${flag} ${word(typeof one === 'string' ? one : JSON.stringify(one))}`)
    })
    .join(' ')
}

const word = (text: string) => (/^[\w.,:@/+-]+$/.test(text) ? text : shellQuote(text))
