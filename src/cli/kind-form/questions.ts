import { failureOf, usage } from '../frame/failure.ts'
import { ask, askSecret, readSecretFile } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import type { KindField } from './fields.ts'
import { flagsOf } from './flags.ts'
import { readValue } from './values.ts'

type Config = Readonly<Record<string, unknown>>

/** Required fields that are not set. */
export function missingFields(fields: readonly KindField[], given: Config): KindField[] {
  return fields.filter(({ name, needed }) => needed && given[name] === undefined)
}

/** One error that names every missing field, for use without a terminal. */
export function missingError(type: string, fields: readonly KindField[], missing: readonly KindField[]) {
  const flags = flagsOf(type, fields)
  const named = missing.map(({ name }) => {
    const flag = flags.find(({ field }) => field.name === name)
    return `--${flag?.flag ?? name}`
  })
  return usage(
    `Missing: ${named.join(', ')}.`,
    `Set ${named.length === 1 ? 'it' : 'them'} with flags or --config FILE; \`mayfly kind show ${type}\` describes them.`,
  )
}

/** Asks on the terminal for every field that is always present and for secrets. Repeats a question after an invalid answer. */
export async function askFields(
  context: Context,
  fields: readonly KindField[],
  given: Config,
): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {}
  for (const field of fields) {
    if (given[field.name] !== undefined || !(field.always || field.secret)) continue
    const answer = await askUntilValid(context, field)
    if (answer !== undefined) answers[field.name] = answer
  }
  return answers
}

async function askUntilValid(context: Context, field: KindField): Promise<unknown> {
  if (field.description !== '') context.out.note(field.description, 'dim')
  for (;;) {
    const text = await askOnce(context, field)
    if (text === '' && (field.default !== undefined || !field.needed)) return undefined
    if (text === '') {
      context.out.note('A value is required.')
      continue
    }
    try {
      if (field.long) return readValue(field, await readSecretFile(context, fileOf(context, text)), 'It')
      return readValue(field, field.type === 'list' ? commaList(text) : text, 'It')
    } catch (error) {
      const { message, exitCode } = failureOf(error)
      if (exitCode > 128) throw error
      context.out.note(message)
    }
  }
}

function askOnce(context: Context, field: KindField): Promise<string> {
  const otherwise = 'Set it with a flag or --config FILE.'
  const empty = field.needed ? '' : ' (empty for none)'
  // Several lines, like a key: a terminal takes only one.
  if (field.long) return ask(context, `${field.name}, path of the file${empty}: `, { otherwise })
  if (field.secret) return askSecret(context, `${field.name}${empty}: `, { otherwise })
  const choices = field.choices === undefined ? '' : ` (${field.choices.join(', ')})`
  const preset = field.default === undefined ? '' : ` [${shownDefault(field)}]`
  const kind = field.type === 'boolean' ? ' (y/n)' : ''
  return ask(context, `${field.name}${choices}${kind}${preset}: `, { otherwise })
}

/** Expands the tilde, as no shell does it here. Standard input (`-`) holds the answers. */
function fileOf({ home }: Context, text: string): string {
  if (text === '-') throw usage('Give the path of a file.')
  return text.startsWith('~/') ? `${home}${text.slice(1)}` : text
}

export function shownDefault({ default: value, type }: KindField): string {
  if (type === 'boolean') return value === true ? 'y' : 'n'
  if (Array.isArray(value)) return value.join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const commaList = (text: string) =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')
