import { flagsOf } from './options.ts'
import type { AnyVerb } from './verb.ts'

/**
 * A message of the server in the words of this command: the field "expires_in" is --expires-in, and ?check=false is
 * --no-check. Names that the command does not have stay as they are.
 */
export function inOwnWords(message: string, verb: AnyVerb): string {
  const flags = flagsOf(verb.options)
  const names = (verb.arguments ?? []).map(({ name }) => name.replace(/[<>[\].]/g, ''))
  const nameOf = (field: string): string | undefined => {
    const wanted = field.replaceAll('_', '-')
    // A repeated flag is in the singular.
    const flag = flags.find(({ name }) => name === wanted || `${name}s` === wanted)
    if (flag !== undefined) return `--${flag.name}`
    return names.includes(field) ? `the argument "${field}"` : undefined
  }
  const text = message
    .replace(/"([a-z_]+)(?:\.\d+)?"(?: in the (?:body|query|path))?/g, (whole, field: string) => {
      return nameOf(field) ?? whole
    })
    .replace(/\?([a-z_]+)=(true|false)/g, (whole, field: string, value: string) => {
      const wanted = `${value === 'true' ? '' : 'no-'}${field.replaceAll('_', '-')}`
      return flags.some(({ name }) => name === wanted) ? `--${wanted}` : whole
    })
  return text.startsWith('the argument') ? `T${text.slice(1)}` : text
}
