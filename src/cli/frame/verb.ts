import type { TSchema } from 'typebox'
import type { Output } from './output.ts'
import type { Surroundings } from './surroundings.ts'

/** The options of every verb that talks to a server. */
export interface Globals {
  readonly server?: string
  readonly profile?: string
  /** A file with the certificate authorities to trust, PEM. */
  readonly ca?: string
  readonly json?: boolean
  /** False with `--no-keychain`. */
  readonly keychain?: boolean
  /** The data directory of the server on this machine, which holds its socket; for administrators' verbs only. */
  readonly dataDir?: string
}

/** The arguments of a verb: its surroundings, the global options and the output. */
export interface Context extends Surroundings {
  readonly globals: Globals
  readonly out: Output
  /** The whole table, for verbs about verbs. */
  readonly verbs: readonly Entry[]
}

/** What the server or this user has under names, for completion; `scopes` are the forms of those of the backends in the line. */
export type Listed =
  | 'agents'
  | 'backends'
  | 'credentials'
  | 'kinds'
  | 'plugins'
  | 'profiles'
  | 'requests'
  | 'scopes'

export interface OptionSpec {
  /** `-t, --ttl <duration>`; `--config [file]` where the value may be left out; `--all`; `--no-check`. */
  readonly flags: string
  readonly description: string
  /** May be repeated; the value is an array. */
  readonly repeatable?: true
  readonly choices?: readonly string[]
  /** Completes the value with the names of these. */
  readonly values?: Listed
  readonly default?: string | number | boolean
}

export interface ArgumentSpec {
  /** `<name>` is required, `[name]` is optional, `[names...]` takes several. */
  readonly name: string
  readonly description: string
  readonly choices?: readonly string[]
  /** Completes the argument with the names of these. */
  readonly values?: Listed
}

export interface Example {
  readonly command: string
  readonly about: string
}

// biome-ignore lint/suspicious/noExplicitAny: the table holds verbs of all shapes; each is typed where it is defined
export type AnyVerb = Verb<any, any>

/** A verb. Parsing, `--help`, completion and `docs/reference/cli.md` come from this description. */
export interface Verb<Options extends object, Args extends readonly unknown[]> {
  readonly description: string
  readonly arguments?: readonly ArgumentSpec[]
  readonly options?: readonly OptionSpec[]
  /** At least one. */
  readonly examples: readonly Example[]
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
  /** Returns the exit code, or nothing for 0. Its errors go through `failureOf`. With `passThrough: 'all'` argv is the one argument. */
  run(context: Context, options: Options, ...args: Args): Promise<number | undefined> | Promise<void>
}

/** `defineVerb<{ ttl?: string }, [backend: string]>({ … })` */
export function defineVerb<Options extends object = object, Args extends readonly unknown[] = []>(
  verb: Verb<Options, Args>,
): Verb<Options, Args> {
  return verb
}

export interface VerbEntry {
  readonly name: string
  /** A few words, without a full stop. */
  readonly summary: string
  /** Left out of overviews and completion: only programs call it, or it is an old name. */
  readonly hidden?: true
  load(): Promise<AnyVerb>
}

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
