import { usage } from './failure.ts'
import { DATA_DIR, type Flag, flagsOf, GLOBALS, type Globals, HELP, type Options } from './options.ts'
import type { AnyVerb, ArgumentSpec } from './verb.ts'

const GLOBAL_KEYS = new Set(flagsOf({ ...GLOBALS, ...DATA_DIR }).map(({ key }) => key))

/** The global options that this verb takes. */
export function globalsOf(verb: AnyVerb): Options {
  if (verb.globals === false) return {}
  return verb.admin === true ? { ...GLOBALS, ...DATA_DIR } : GLOBALS
}

/** What a command line may hold. */
export interface Grammar {
  readonly options: readonly Flag[]
  readonly arguments: readonly ArgumentSpec[]
  readonly passThrough?: 'options' | 'unknown' | undefined
  /** Where to look up the usage: the hint of every error. */
  readonly hint: string
}

export interface Line {
  /** By name in camel case. */
  readonly options: Record<string, unknown>
  readonly args: readonly unknown[]
}

export interface Parsed extends Line {
  readonly globals: Globals
}

/** Parses the words after a verb; `help` when they ask for it. Throws `CliError` (usage). */
export async function parseVerb(
  words: readonly string[],
  verb: AnyVerb,
  argv: readonly string[],
): Promise<Parsed | 'help'> {
  const { passThrough } = verb
  const line = await parseLine(
    {
      options: flagsOf({ ...verb.options, ...HELP, ...globalsOf(verb) }),
      arguments: verb.arguments ?? [],
      passThrough: passThrough === 'all' ? undefined : passThrough,
      hint: `Run \`mayfly ${words.join(' ')} --help\` for usage.`,
    },
    argv,
  )
  if (line.options['help'] === true) return 'help'
  if (verb.globals === false) return { ...line, globals: {} }
  const isGlobal = ([name]: [string, unknown]) => GLOBAL_KEYS.has(name)
  const all = Object.entries(line.options)
  return {
    globals: Object.fromEntries(all.filter(isGlobal)),
    options: Object.fromEntries(all.filter((entry) => !isGlobal(entry))),
    args: line.args,
  }
}

/** Parses a command line; with the option `help` it need not be complete. Throws `CliError` (usage). */
export async function parseLine(grammar: Grammar, argv: readonly string[]): Promise<Line> {
  const flags = new Map(grammar.options.map((flag) => [flag.name, flag]))
  const { options, words, unknown } = readTokens(grammar, flags, argv)
  if (options['help'] === true) return { options, args: [] }
  if (unknown !== undefined) throw await unknownOption(unknown, [...flags.keys()], grammar.hint)
  return { options, args: readArguments(grammar, words) }
}

interface Tokens {
  readonly options: Record<string, unknown>
  readonly words: readonly string[]
  /** The first option that the grammar does not have. */
  readonly unknown: string | undefined
}

function readTokens(grammar: Grammar, flags: ReadonlyMap<string, Flag>, argv: readonly string[]): Tokens {
  const tokens = tokenize([...flags.values()], argv)
  const options = defaultsOf([...flags.values()])
  const words: string[] = []
  let unknown: string | undefined
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at]
    if (token === undefined) break
    if (token.kind === 'option-terminator') {
      // The terminator belongs to the options that are passed on.
      words.push(...argv.slice(token.index + (unknown === undefined ? 1 : 0)))
      break
    }
    if (token.kind === 'positional') {
      if (grammar.passThrough === 'options') {
        words.push(...argv.slice(token.index))
        break
      }
      words.push(token.value)
      continue
    }
    const flag = flags.get(token.name)
    if (flag === undefined) {
      unknown ??= token.rawName
      // `-abc` is three tokens of one word.
      if (tokens[at - 1]?.index !== token.index) words.push(argv[token.index] ?? '')
      continue
    }
    const next = tokens[at + 1]
    let value = token.value
    if (isOptional(flag) && value === undefined && next?.kind === 'positional') {
      value = next.value
      at += 1
    }
    setOption(options, flag, value, grammar)
  }
  return { options, words, unknown: grammar.passThrough === 'unknown' ? undefined : unknown }
}

function tokenize(flags: readonly Flag[], argv: readonly string[]) {
  // By getBuiltinModule: an import of node:util would load all of it.
  const { parseArgs } = process.getBuiltinModule('node:util')
  const options = flags.map((flag) => {
    const { name, short, form } = flag
    const type = form === undefined || isOptional(flag) ? ('boolean' as const) : ('string' as const)
    return [name, { type, ...(short === undefined ? {} : { short }) }] as const
  })
  return parseArgs({
    args: [...argv],
    options: Object.fromEntries(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens
}

function defaultsOf(flags: readonly Flag[]): Record<string, unknown> {
  const options: Record<string, unknown> = {}
  for (const { key, isOff, default: preset } of flags) {
    if (preset !== undefined) options[key] = preset
    // `--no-check` alone means that checking is the default.
    else if (isOff === true && !flags.some((one) => one.key === key && one.isOff !== true))
      options[key] = true
  }
  return options
}

function setOption(
  options: Record<string, unknown>,
  flag: Flag,
  value: string | undefined,
  { hint }: Grammar,
): void {
  const { key, name, form } = flag
  if (form === undefined) {
    if (value !== undefined) throw usage(`--${name} takes no value.`, hint)
    options[key] = flag.isOff !== true
    return
  }
  if (value === undefined) {
    if (!isOptional(flag)) throw usage(`--${name} needs a value.`, hint)
    options[key] = true
    return
  }
  checkChoice(value, flag.choices, `--${name}`, hint)
  options[key] = flag.repeatable === true ? [...((options[key] as string[] | undefined) ?? []), value] : value
}

/** `[file]`: the value may be left out. */
const isOptional = ({ form }: Flag) => form?.startsWith('[') === true

function readArguments({ arguments: specs, hint }: Grammar, words: readonly string[]): unknown[] {
  const args = specs.map(({ name: form, choices }, at) => {
    const name = form.replace(/[<>[\].]/g, '')
    const given = form.includes('...') ? words.slice(at) : words.slice(at, at + 1)
    if (form.startsWith('<') && given.length === 0) throw usage(`The argument "${name}" is missing.`, hint)
    for (const one of given) checkChoice(one, choices, `the argument "${name}"`, hint)
    return form.includes('...') ? given : given[0]
  })
  if (words.length > specs.length && specs.at(-1)?.name.includes('...') !== true)
    throw usage(`Too many arguments: ${words.length} instead of ${specs.length}.`, hint)
  return args
}

function checkChoice(value: string, choices: readonly string[] | undefined, of: string, hint: string): void {
  if (choices === undefined || choices.includes(value)) return
  const shown = JSON.stringify(value.slice(0, LONGEST_SHOWN))
  throw usage(`${shown} is not a value of ${of}. Allowed choices are ${choices.join(', ')}.`, hint)
}

const LONGEST_SHOWN = 40

async function unknownOption(name: string, known: readonly string[], hint: string) {
  const { didYouMean } = await import('../../domain/formats/suggest.ts')
  const meant = didYouMean(
    name,
    known.map((one) => `--${one}`),
  )
  return usage(`Unknown option ${JSON.stringify(name.slice(0, LONGEST_SHOWN))}${meant}.`, hint)
}
