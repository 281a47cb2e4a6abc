import { shellWord } from '../../domain/formats/shell-word.ts'
import type { Globals } from './options.ts'
import type { Entry } from './verb.ts'

/** The options of this command line that lead to a server and a login, as a later command needs them. */
export function globalFlags({ server, profile, ca, dataDir }: Globals): string {
  return Object.entries({ server, profile, ca, 'data-dir': dataDir })
    .flatMap(([name, value]) => (value === undefined ? [] : [` --${name} ${shellWord(value)}`]))
    .join('')
}

/** Verbs that hints name and that take no global options. */
const WITHOUT_GLOBALS = new Set(['server', 'completion'])

/** A command in a sentence for the user. */
const COMMAND = /`mayfly ([^`]*)`/g

/** Repeats these options in each command that the text names, as far as the command takes them. */
export async function withGlobalFlags(
  text: string,
  globals: Globals,
  verbs: readonly Entry[],
): Promise<string> {
  if (globalFlags(globals) === '') return text
  const parts = await Promise.all(
    [...text.matchAll(COMMAND)].map(async ([, words = '']) => flagsFor(words, globals, verbs)),
  )
  return text.replace(COMMAND, (_, words: string) => `\`mayfly ${words}${parts.shift() ?? ''}\``)
}

/** None for a command that names a server or profile already, or that needs none. */
async function flagsFor(words: string, globals: Globals, verbs: readonly Entry[]): Promise<string> {
  const argv = words.split(' ')
  if (argv.some((word) => ['--help', '--server', '--profile'].includes(word))) return ''
  const { findVerb } = await import('./find-verb.ts')
  const found = await findVerb(argv, verbs).catch(() => undefined)
  if (found?.what !== 'verb') return ''
  if (WITHOUT_GLOBALS.has(found.entry.name)) return ''
  const { dataDir, ...others } = globals
  if (dataDir === undefined) return globalFlags(others)
  // Loading a verb takes time, and few command lines have --data-dir.
  const { admin } = await found.entry.load()
  return globalFlags(admin === true ? globals : others)
}
