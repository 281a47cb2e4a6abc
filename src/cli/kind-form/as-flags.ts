import { shellWord } from '../../domain/shell-word.ts'
import type { KindField } from './fields.ts'
import { flagsOf } from './flags.ts'

/** The answers as shell flags, for repeating the command without the questions. Omits secrets. */
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
      return values.map(
        (one) => `--${flag} ${shellWord(typeof one === 'string' ? one : JSON.stringify(one))}`,
      )
    })
    .join(' ')
}
