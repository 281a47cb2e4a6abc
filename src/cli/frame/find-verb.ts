import { usage } from './failure.ts'
import { DATA_DIR, type Flag, flagsOf, GLOBALS, HELP } from './options.ts'
import type { Entry, VerbEntry, VerbFamily } from './verb.ts'

/** The options that may come before the verb. Those in `VALUED` take a value. */
const BEFORE = flagsOf({ ...GLOBALS, ...DATA_DIR, ...HELP })
const namesOf = (flags: readonly Flag[]) => flags.map(({ name }) => `--${name}`)
const VALUED = new Set(namesOf(BEFORE.filter(({ form }) => form !== undefined)))
const PLAIN = new Set(['-h', ...namesOf(BEFORE.filter(({ form }) => form === undefined))])

export type Found =
  | { readonly what: 'version' }
  | { readonly what: 'overview' }
  /** Help on a family of verbs. */
  | { readonly what: 'family'; readonly family: VerbFamily }
  | {
      readonly what: 'verb'
      readonly words: readonly string[]
      readonly entry: VerbEntry
      readonly argv: string[]
    }

/** Finds the verb of a command line, and the words left for it. Throws `CliError` for an unknown verb. */
export async function findVerb(argv: readonly string[], verbs: readonly Entry[]): Promise<Found> {
  const first = nextWord(argv)
  if (first.options.some((option) => option === '-V' || option === '--version')) return { what: 'version' }
  if (first.word === undefined) return { what: 'overview' }
  if (first.word === 'help') return findVerb([...first.rest, '--help'], verbs)
  const entry = verbs.find(({ name }) => name === first.word)
  if (entry === undefined) throw await unknown(first.word, verbs, 'mayfly')
  if (!('verbs' in entry)) {
    const inner = entry.inner?.find(({ name }) => name === first.rest[0])
    const words = inner === undefined ? [entry.name] : [entry.name, inner.name]
    const argv = [...first.options, ...first.rest.slice(words.length - 1)]
    return { what: 'verb', words, entry: inner ?? entry, argv }
  }
  const second = nextWord(first.rest)
  if (second.word === undefined) return { what: 'family', family: entry }
  const inner = entry.verbs.find(({ name }) => name === second.word)
  if (inner === undefined) throw await unknown(second.word, entry.verbs, `mayfly ${entry.name}`)
  const left = [...first.options, ...second.options, ...second.rest]
  return { what: 'verb', words: [entry.name, inner.name], entry: inner, argv: left }
}

/** The first word that is not a global option. Throws `CliError` for an unknown option. */
function nextWord(argv: readonly string[]): { word: string | undefined; options: string[]; rest: string[] } {
  const options: string[] = []
  for (let at = 0; at < argv.length; at += 1) {
    const one = argv[at] ?? ''
    const name = one.split('=', 1)[0] ?? ''
    if (!one.startsWith('-')) return { word: one, options, rest: argv.slice(at + 1) }
    if (VALUED.has(name) && name === one) {
      const value = argv[at + 1]
      if (value === undefined) throw usage(`${name} needs a value.`)
      options.push(one, value)
      at += 1
    } else if (VALUED.has(name) || PLAIN.has(one) || one === '-V' || one === '--version') {
      options.push(one)
    } else {
      throw usage(`${JSON.stringify(one)} is not an option of mayfly itself.`)
    }
  }
  return { word: undefined, options, rest: [] }
}

/** What people try who know other programs or an earlier version, and no spelling leads to. */
const OTHERWISE = new Map([
  ['mayfly version', 'mayfly --version'],
  ['mayfly whoami', 'mayfly status'],
  ['mayfly credentials revoke', 'mayfly revoke'],
])

async function unknown(word: string, verbs: readonly Entry[], command: string) {
  const { didYouMean } = await import('../../domain/formats/suggest.ts')
  const names = verbs.map(({ name }) => name)
  const shown = JSON.stringify(word.slice(0, 40))
  const other = OTHERWISE.get(`${command} ${word}`)
  const meant = other === undefined ? didYouMean(word, names) : ` (did you mean "${other}"?)`
  return usage(`${shown} is not a command${meant}.`, `Run \`${command} --help\` for usage.`)
}
