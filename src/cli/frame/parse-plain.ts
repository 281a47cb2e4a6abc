import type { AnyVerb, ArgumentSpec, Globals, OptionSpec } from './verb.ts'

export interface Parsed {
  readonly globals: Globals
  readonly options: Record<string, unknown>
  readonly args: readonly unknown[]
}

export const GLOBALS: readonly OptionSpec[] = [
  { flags: '--server <url>', description: 'the server [env: MAYFLY_SERVER]' },
  { flags: '--profile <name>', description: 'whose login [env: MAYFLY_PROFILE]' },
  { flags: '--ca <file>', description: 'authorities to trust, PEM [env: MAYFLY_CA_FILE]' },
  { flags: '--json', description: 'print JSON' },
  { flags: '--no-keychain', description: 'keep secrets in files [env: MAYFLY_KEYCHAIN=off]' },
]
export const DATA_DIR: OptionSpec = {
  flags: '--data-dir <path>',
  description: 'data directory of the server on this machine [env: MAYFLY_DATA_DIR]',
}
const GLOBAL_NAMES = ['server', 'profile', 'ca', 'json', 'keychain', 'dataDir']

/** The global options of this verb. */
export function globalsOf(verb: AnyVerb): readonly OptionSpec[] {
  if (verb.globals === false) return []
  return verb.admin === true ? [...GLOBALS, DATA_DIR] : GLOBALS
}

/** All options as they were read, parted into the global ones and the verb's own. */
export function part(all: Readonly<Record<string, unknown>>, verb: AnyVerb): Omit<Parsed, 'args'> {
  if (verb.globals === false) return { globals: {}, options: { ...all } }
  const entries = Object.entries(all)
  return {
    globals: Object.fromEntries(entries.filter(([name]) => GLOBAL_NAMES.includes(name))),
    options: Object.fromEntries(entries.filter(([name]) => !GLOBAL_NAMES.includes(name))),
  }
}

interface Flag {
  readonly key: string
  readonly takesValue: boolean
  /** What it is set to where it takes no value. */
  readonly value: boolean
  readonly spec: OptionSpec
}

/**
 * Reads a command line that is right, in no time: commander takes as long to load as all the rest. Undefined for
 * whatever is not plain (help, mistakes, rare forms), which is commander's to answer. A test holds the two together.
 */
export function parsePlain(verb: AnyVerb, argv: readonly string[]): Parsed | undefined {
  if (verb.configure !== undefined) return undefined
  const specs = [...(verb.options ?? []), ...globalsOf(verb)]
  const flags = flagsOf(specs)
  if (flags === undefined) return undefined
  const all: Record<string, unknown> = {}
  for (const spec of specs) if (spec.default !== undefined) all[keyOf(longOf(spec.flags))] = spec.default
  for (const { key, spec } of flags.values()) if (longOf(spec.flags).startsWith('--no-')) all[key] = true
  const words: string[] = []
  for (let at = 0; at < argv.length; at += 1) {
    const one = argv[at] ?? ''
    if (one === '--') {
      words.push(...argv.slice(at + 1))
      break
    }
    if (!one.startsWith('-') || one === '-') {
      if (verb.passThrough === 'options') {
        words.push(...argv.slice(at))
        break
      }
      words.push(one)
      continue
    }
    const equals = one.startsWith('--') ? one.indexOf('=') : -1
    const flag = flags.get(equals < 0 ? one : one.slice(0, equals))
    if (flag === undefined || (equals >= 0 && !flag.takesValue)) return undefined
    if (!flag.takesValue) {
      all[flag.key] = flag.value
      continue
    }
    const value = equals < 0 ? argv[at + 1] : one.slice(equals + 1)
    if (equals < 0) at += 1
    if (value === undefined || value.startsWith('-') || value === '') return undefined
    if (flag.spec.choices !== undefined && !flag.spec.choices.includes(value)) return undefined
    all[flag.key] = flag.spec.repeatable === true ? [...((all[flag.key] as string[]) ?? []), value] : value
  }
  const args = argumentsOf(verb.arguments ?? [], words)
  return args === undefined ? undefined : { ...part(all, verb), args }
}

function flagsOf(specs: readonly OptionSpec[]): Map<string, Flag> | undefined {
  const flags = new Map<string, Flag>()
  for (const spec of specs) {
    // Only these forms: `-o, --output <form>`, `--all`, `--no-x`.
    const match = /^(?:(-\w), )?(--[a-z][a-z0-9-]*)( <[^>.]+>)?$/.exec(spec.flags)
    const long = match?.[2]
    if (long === undefined) return undefined
    const flag = {
      key: keyOf(long),
      takesValue: match?.[3] !== undefined,
      value: !long.startsWith('--no-'),
      spec,
    }
    flags.set(long, flag)
    if (match?.[1] !== undefined) flags.set(match[1], flag)
  }
  return flags
}

const longOf = (flags: string) => /--[a-z][a-z0-9-]*/.exec(flags)?.[0] ?? ''
const keyOf = (long: string) =>
  long.replace(/^--(?:no-)?/, '').replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** Undefined when there are too few or too many, or one that is no choice. */
function argumentsOf(specs: readonly ArgumentSpec[], words: readonly string[]): unknown[] | undefined {
  const args: unknown[] = []
  for (const [at, { name, choices }] of specs.entries()) {
    const isNeeded = name.startsWith('<')
    const isRest = name.includes('...')
    const given = isRest ? words.slice(at) : words.slice(at, at + 1)
    if (isNeeded && given.length === 0) return undefined
    if (choices !== undefined && given.some((one) => !choices.includes(one))) return undefined
    args.push(isRest ? given : given[0])
  }
  const hasRest = specs.at(-1)?.name.includes('...') === true
  return !hasRest && words.length > specs.length ? undefined : args
}
