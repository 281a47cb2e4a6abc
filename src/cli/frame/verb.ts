import type { TSchema } from 'typebox'
import type { Globals, Listed, OptionSpec, Options, ValuesOf } from './options.ts'
import type { Output } from './output.ts'
import type { Surroundings } from './surroundings.ts'

/** The arguments of a verb: its surroundings, the global options and the output. */
export interface Context extends Surroundings {
  readonly globals: Globals
  readonly out: Output
  /** The whole table, for verbs about verbs. */
  readonly verbs: readonly Entry[]
}

export interface ArgumentSpec {
  /** `<name>` is required, `[name]` is optional, `[names...]` takes several. */
  readonly name: string
  readonly description: string
  readonly choices?: readonly string[]
  /** Completes the argument with the names of these. */
  readonly values?: Listed
}

type WordOf<One> = One extends { readonly choices: readonly (infer Word)[] } ? Word : string
type ArgumentOf<One> = One extends { readonly name: infer Name }
  ? Name extends `${string}...${string}`
    ? WordOf<One>[]
    : Name extends `<${string}`
      ? WordOf<One>
      : WordOf<One> | undefined
  : never
/** The values of these arguments, as `run` gets them. */
type ArgumentsOf<All> = { [At in keyof All]: ArgumentOf<All[At]> }

export interface Example {
  readonly command: string
  readonly about: string
}

/**
 * A verb. Parsing, `--help`, completion, `docs/reference/cli.md` and the types of what `run` gets come from this
 * description.
 */
interface Described {
  readonly description: string
  readonly arguments?: readonly ArgumentSpec[]
  readonly options?: Options
  /** What --json prints: its schema, or a description. Absent if the verb prints nothing. */
  readonly json?: string | (() => Promise<TSchema>)
  /** Exit codes besides 0, 1 and 2. */
  readonly exits?: readonly (3 | 4 | 5)[]
  /** For administrators: takes --data-dir. */
  readonly admin?: true
  /** False: takes none of the global options. */
  readonly globals?: false
  /**
   * `options`: nothing after the first argument is an option of this verb. `unknown`: options that it does not have
   * become arguments. `all`: `run` gets argv unparsed.
   */
  readonly passThrough?: 'options' | 'unknown' | 'all'
  /** After its name in the first line of --help, where arguments and options do not say enough. */
  readonly usage?: string
  /** The verb handles signals itself; `context.signal` never aborts. */
  readonly ownSignals?: true
}

export interface Verb<All extends readonly ArgumentSpec[], Own extends Options> extends Described {
  readonly arguments?: All
  readonly options?: Own
  /** At least one: a command, and what it is for. */
  readonly examples: Readonly<Record<string, string>>
  /** Returns the exit code, or nothing for 0. Its errors go through `failureOf`. With `passThrough: 'all'` argv is the one argument. */
  run(
    context: Context,
    options: ValuesOf<Own>,
    ...args: ArgumentsOf<All>
  ): Promise<number | undefined> | Promise<void>
}

export interface AnyVerb extends Described {
  readonly examples: readonly Example[]
  // biome-ignore lint/suspicious/noExplicitAny: the table holds verbs of all shapes; each is typed where it is defined
  run(context: Context, options: any, ...args: any[]): Promise<number | undefined> | Promise<void>
}

export function defineVerb<
  const All extends readonly ArgumentSpec[] = readonly [],
  const Own extends Options = Readonly<Record<never, OptionSpec>>,
>(verb: Verb<All, Own>): Omit<Verb<All, Own>, 'examples'> & Pick<AnyVerb, 'examples'> {
  return { ...verb, examples: Object.entries(verb.examples).map(([command, about]) => ({ command, about })) }
}

export interface VerbEntry {
  readonly name: string
  /** A few words, without a full stop. */
  readonly summary: string
  /** Left out of overviews and completion: only programs call it, or it is an old name. */
  readonly hidden?: true
  /** The words of the verb that this one is, too. */
  readonly aliasOf?: string
  /** Verbs whose words begin with that of this one: the `reload` of `mayfly server reload`. */
  readonly inner?: readonly VerbEntry[]
  load(): Promise<AnyVerb>
}

/** The entry of a verb, which its module exports as `verb` or under this name. */
export function entry<const Name extends string = 'verb'>(
  name: string,
  summary: string,
  load: () => Promise<Readonly<Record<NoInfer<Name>, AnyVerb>>>,
  exported: Name = 'verb' as Name,
): VerbEntry {
  return { name, summary, load: async () => (await load())[exported] }
}

export const hidden = (verb: VerbEntry): VerbEntry => ({ ...verb, hidden: true })

/** A word that is followed by a verb: the `agent` of `mayfly agent create`. */
export interface VerbFamily {
  readonly name: string
  readonly summary: string
  /** Left out of the overview and of completion: it is an old name. */
  readonly hidden?: true
  readonly verbs: readonly VerbEntry[]
}

export type Entry = VerbEntry | VerbFamily

/** The verbs under one heading of the overview. */
export interface VerbGroup {
  readonly title: string
  readonly verbs: readonly Entry[]
}
