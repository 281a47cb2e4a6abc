import { type Found, findVerb } from '../frame/find-verb.ts'
import { DATA_DIR, type Flag, flagsOf, GLOBALS, type Globals, HELP, type Listed } from '../frame/options.ts'
import { globalsOf } from '../frame/parse.ts'
import type { AnyVerb, ArgumentSpec, Entry } from '../frame/verb.ts'

export interface Candidate {
  readonly word: string
  readonly about: string
}

/** `files`: the shell completes a path. An empty list: nothing is known. */
export type Completion = readonly Candidate[] | 'files'

/** What to read, with the global options of the line and the backends that it names. */
export interface Wanted {
  readonly what: Listed
  readonly isAdmin: boolean
  readonly globals: Globals
  readonly backends: readonly string[]
}

/** The names of what the server has. */
export type ReadNames = (wanted: Wanted) => Promise<readonly Candidate[]>

interface Line {
  /** The words before the one to complete, without those that the frame takes. */
  readonly before: readonly string[]
  readonly current: string
  readonly verbs: readonly Entry[]
  readonly readNames: ReadNames
}

/** Completions of the last word. The words follow `mayfly`, as the shell has split them. */
export async function complete(
  words: readonly string[],
  verbs: readonly Entry[],
  readNames: ReadNames,
): Promise<Completion> {
  const before = rejoin(words.slice(0, -1))
  const last = words.at(-1) ?? ''
  // Bash completes what follows the last colon.
  const isSplit = last === ':' || words.at(-2) === ':'
  const head = isSplit ? `${before.pop() ?? ''}${last === ':' ? ':' : ''}` : ''
  const rest = last === '=' || last === ':' ? '' : last
  const current = `${head}${rest}`
  const found = await candidates({ before, current, verbs, readNames })
  if (found === 'files') return found
  return found
    .filter(({ word }) => word.startsWith(current))
    .map((one) => ({ ...one, word: one.word.slice(head.length) }))
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

async function candidates(line: Line): Promise<Completion> {
  const { before, verbs } = line
  if (before.includes('--')) return 'files'
  const options = flagsOf({ ...GLOBALS, ...DATA_DIR })
  const valued = optionBefore(before.at(-1), options)
  if (valued !== undefined) return valuesOf(line, valued, true, [])
  // A line that cannot be right has no completion.
  const found = await findVerb(before, verbs).catch(() => undefined)
  switch (found?.what) {
    case 'overview':
      return nextVerbs(line, verbs)
    case 'family':
      return nextVerbs(line, found.family.verbs)
    case 'verb':
      return besideInner(line, found)
    default:
      return []
  }
}

async function nextVerbs(line: Line, verbs: readonly Entry[]): Promise<Completion> {
  if (line.current.startsWith('-')) return optionsFor(line, flagsOf({ ...GLOBALS, ...HELP }), false)
  return wordsOf(verbs)
}

function wordsOf(verbs: readonly Entry[]): Candidate[] {
  const shown = verbs.filter((entry) => entry.hidden !== true)
  return shown.map(({ name, summary }) => ({ word: name, about: summary }))
}

async function besideInner(
  line: Line,
  { entry, argv }: Extract<Found, { what: 'verb' }>,
): Promise<Completion> {
  const own = await verbCandidates(line, await entry.load(), argv)
  if (own === 'files' || entry.inner === undefined || argv.length > 0 || line.current.startsWith('-'))
    return own
  return [...wordsOf(entry.inner), ...own]
}

async function verbCandidates(line: Line, verb: AnyVerb, argv: readonly string[]): Promise<Completion> {
  const options = flagsOf({ ...verb.options, ...HELP, ...globalsOf(verb) })
  const isAdmin = verb.admin === true
  const given = argv.filter(
    (word, at) => !word.startsWith('-') && optionBefore(argv[at - 1], options) === undefined,
  )
  const backends = backendsIn(verb, argv, given)
  const valued = optionBefore(argv.at(-1), options)
  if (valued !== undefined) return valuesOf(line, valued, isAdmin, backends)
  if (verb.passThrough === 'all' || (verb.passThrough === 'options' && given.length > 0)) return 'files'
  if (line.current.startsWith('-')) return optionsFor(line, options, isAdmin, backends)
  const argument = argumentAt(verb.arguments ?? [], given.length)
  if (argument === undefined) return []
  const found = await valuesOf(line, { ...argument, value: argument.name }, isAdmin, backends)
  return found === 'files' ? found : found.filter(({ word }) => !given.includes(word))
}

/** The backends that the line names, as an argument or an option. */
function backendsIn(verb: AnyVerb, argv: readonly string[], given: readonly string[]): string[] {
  const named = given.filter((_, at) => argumentAt(verb.arguments ?? [], at)?.values === 'backends')
  const options = flagsOf(verb.options).filter(({ values }) => values === 'backends')
  const valued = argv.flatMap((word, at) => {
    const [name = '', joined] = word.split('=', 2)
    const value = optionBefore(name, options) === undefined ? undefined : (joined ?? argv[at + 1])
    return value === undefined ? [] : [value]
  })
  return [...new Set([...named, ...valued])]
}

function argumentAt(all: readonly ArgumentSpec[], at: number): ArgumentSpec | undefined {
  const last = all.at(-1)
  return all[at] ?? (last?.name.includes('...') === true ? last : undefined)
}

/** The options; with `--status=` the values of that one. */
async function optionsFor(
  line: Line,
  options: readonly Flag[],
  isAdmin: boolean,
  backends: readonly string[] = [],
): Promise<Completion> {
  const [name = ''] = line.current.split('=', 1)
  if (name === line.current)
    return options.map((flag) => ({ word: `--${flag.name}`, about: firstClause(flag.description) }))
  const valued = optionBefore(name, options)
  const values = valued === undefined ? [] : await valuesOf(line, valued, isAdmin, backends)
  return values === 'files' ? values : values.map((one) => ({ ...one, word: `${name}=${one.word}` }))
}

/** What may be the value of an option or an argument. */
interface Valued {
  /** `<file>`, `name`. */
  readonly value: string
  readonly choices?: readonly string[] | undefined
  readonly values?: Listed
}

/** The option that this word names, if a value follows. */
function optionBefore(word: string | undefined, options: readonly Flag[]): Valued | undefined {
  for (const flag of options) {
    const { name, short, form } = flag
    if (form !== undefined && (word === `--${name}` || word === `-${short}`)) return { ...flag, value: form }
  }
  return undefined
}

async function valuesOf(
  { before, readNames }: Line,
  { value, choices, values }: Valued,
  isAdmin: boolean,
  backends: readonly string[],
): Promise<Completion> {
  if (choices !== undefined) return choices.map((word) => ({ word, about: '' }))
  if (values !== undefined) return readNames({ what: values, isAdmin, globals: globalsIn(before), backends })
  return /file|path|dir|socket/i.test(value) ? 'files' : []
}

/** The global options that choose the server and the login. */
function globalsIn(words: readonly string[]): Globals {
  const globals: Record<string, string> = {}
  for (const { name, key, form } of flagsOf({ ...GLOBALS, ...DATA_DIR })) {
    if (form === undefined) continue
    const at = words.indexOf(`--${name}`)
    const joined = words.find((word) => word.startsWith(`--${name}=`))
    const given = joined?.slice(name.length + 3) ?? (at < 0 ? undefined : words[at + 1])
    if (given !== undefined) globals[key] = given
  }
  return globals
}

function firstClause(text: string): string {
  return text.replace(/\. .*$/s, '').replace(/\.$/, '')
}
