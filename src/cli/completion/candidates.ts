import { findVerb } from '../frame/find-verb.ts'
import { DATA_DIR, flagOf, GLOBALS, globalsOf, HELP } from '../frame/parse.ts'
import type { AnyVerb, Entry, OptionSpec } from '../frame/verb.ts'

export interface Candidate {
  readonly word: string
  readonly about: string
}

/** `files`: the shell completes a path. An empty list: nothing is known. */
export type Completion = readonly Candidate[] | 'files'

/** Completions of the last word. The words follow `mayfly`, as the shell has split them. */
export async function complete(words: readonly string[], verbs: readonly Entry[]): Promise<Completion> {
  const before = rejoin(words.slice(0, -1))
  const last = words.at(-1) ?? ''
  const current = last === '=' ? '' : last
  const found = await candidates(before, current, verbs)
  return found === 'files' ? found : found.filter(({ word }) => word.startsWith(current))
}

/** Bash splits `--server=http://x` at `=` and `:`. */
function rejoin(words: readonly string[]): string[] {
  const whole: string[] = []
  let glue = false
  for (const word of words) {
    if (word === '=') continue
    if (word === ':' || glue) whole.push(`${whole.pop() ?? ''}${word}`)
    else whole.push(word)
    glue = word === ':'
  }
  return whole
}

async function candidates(
  before: readonly string[],
  current: string,
  verbs: readonly Entry[],
): Promise<Completion> {
  if (before.includes('--')) return 'files'
  const value = valueAfter(before.at(-1), [...GLOBALS, DATA_DIR])
  if (value !== undefined) return value
  // A line that cannot be right has no completion.
  const found = await findVerb(before, verbs).catch(() => undefined)
  switch (found?.what) {
    case 'overview':
      return nextVerbs(current, verbs)
    case 'family':
      return nextVerbs(current, found.family.verbs)
    case 'verb':
      return verbCandidates(await found.entry.load(), found.argv, current)
    default:
      return []
  }
}

function nextVerbs(current: string, verbs: readonly Entry[]): Completion {
  if (current.startsWith('-')) return optionsFor(current, [...GLOBALS, HELP])
  const shown = verbs.filter((entry) => !('hidden' in entry))
  return shown.map(({ name, summary }) => ({ word: name, about: summary }))
}

function verbCandidates(verb: AnyVerb, argv: readonly string[], current: string): Completion {
  const options = [...(verb.options ?? []), HELP, ...globalsOf(verb)]
  const value = valueAfter(argv.at(-1), options)
  if (value !== undefined) return value
  const hasArgument = argv.some((word, at) => !word.startsWith('-') && !takesValue(argv[at - 1], options))
  if (verb.passThrough === 'all' || (verb.passThrough === 'options' && hasArgument)) return 'files'
  if (current.startsWith('-')) return optionsFor(current, options)
  const [argument] = verb.arguments ?? []
  return argument === undefined || hasArgument ? [] : valuesOf(argument.name, argument.choices)
}

/** The options; with `--status=` the values of that one. */
function optionsFor(current: string, options: readonly OptionSpec[]): Completion {
  const [name = ''] = current.split('=', 1)
  if (name !== current) {
    const values = valueAfter(name, options) ?? []
    return values === 'files' ? values : values.map((one) => ({ ...one, word: `${name}=${one.word}` }))
  }
  return options.map((spec) => ({ word: `--${flagOf(spec).name}`, about: firstClause(spec.description) }))
}

const takesValue = (word: string | undefined, options: readonly OptionSpec[]) =>
  valueAfter(word, options) !== undefined

/** Completions for the value of an option; undefined if it takes none. */
function valueAfter(word: string | undefined, options: readonly OptionSpec[]): Completion | undefined {
  for (const spec of options) {
    const { name, short, value } = flagOf(spec)
    if (value !== undefined && (word === `--${name}` || word === `-${short}`))
      return valuesOf(value, spec.choices)
  }
  return undefined
}

function valuesOf(name: string, choices: readonly string[] | undefined): Completion {
  if (choices !== undefined) return choices.map((word) => ({ word, about: '' }))
  return /file|path|dir|socket/i.test(name) ? 'files' : []
}

function firstClause(text: string): string {
  return text.replace(/\. .*$/s, '').replace(/\.$/, '')
}
