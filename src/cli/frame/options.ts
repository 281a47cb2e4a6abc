/** What the server or this user has under names, for completion; `scopes` are the forms of those of the backends in the line. */
export type Listed =
  | 'agents'
  | 'backends'
  | 'credentials'
  | 'identities'
  | 'kinds'
  | 'plugins'
  | 'profiles'
  | 'requests'
  | 'runs'
  | 'scopes'

/** An option. Its name on the command line is its key in kebab case. */
export interface OptionSpec {
  readonly description: string
  /** The form of its value: `<duration>`, or `[file]` if it may be left out. A switch has none. */
  readonly form?: string
  readonly short?: string
  /** May be repeated; the value is an array. */
  readonly repeatable?: true
  readonly choices?: readonly string[] | undefined
  /** Completes the value with the names of these. */
  readonly values?: Listed
  readonly default?: string
  /** The switch `noCheck` sets `check` to false. */
  readonly isOff?: true
}

declare const VALUE: unique symbol

/** An option, and the type of its value. */
export interface Option<Value> extends OptionSpec {
  readonly [VALUE]?: Value
}

interface Off extends Option<boolean | undefined> {
  readonly isOff: true
}

/** By key: `expiresIn` is --expires-in. */
export type Options = Readonly<Record<string, OptionSpec>>

type More = Pick<OptionSpec, 'short' | 'values' | 'default'>
type Given<Value, Rest> = Rest extends { readonly default: string } ? Value : Value | undefined
type TextOf<Form> = Form extends `[${string}` ? string | true : string

/** `--ttl <duration>` */
export function text<const Form extends string, const Rest extends More = object>(
  form: Form,
  description: string,
  more?: Rest,
): Option<Given<TextOf<Form>, Rest>> {
  return { form, description, ...more }
}

/** `--scope <scope>`, which may be repeated. */
export function many(
  form: string,
  description: string,
  more?: Pick<More, 'short' | 'values'>,
): Option<string[] | undefined> {
  return { form, description, repeatable: true, ...more }
}

/** `--status <status>`, one of a few. */
export function choice<const Word extends string, const Rest extends More = object>(
  form: string,
  description: string,
  choices: readonly Word[],
  more?: Rest,
): Option<Given<Word, Rest>> {
  return { form, description, choices, ...more }
}

/** `--all` */
export function flag(description: string, short?: string): Option<boolean | undefined> {
  return short === undefined ? { description } : { description, short }
}

/** `--no-check`, under the key `noCheck`: `check` is false with it. */
export function off(description: string): Off {
  return { description, isOff: true }
}

type ValueOf<One> = One extends Option<infer Value> ? Value : never
type KeyOf<Key, One> = One extends Off ? (Key extends `no${infer Rest}` ? Uncapitalize<Rest> : never) : Key

/** The values of these options, as `run` gets them. */
export type ValuesOf<All> = {
  readonly [Key in keyof All as undefined extends ValueOf<All[Key]> ? KeyOf<Key, All[Key]> : never]?: ValueOf<
    All[Key]
  >
} & {
  readonly [Key in keyof All as undefined extends ValueOf<All[Key]> ? never : KeyOf<Key, All[Key]>]: ValueOf<
    All[Key]
  >
}

/** An option as the command line has it. */
export interface Flag extends OptionSpec {
  /** Without its dashes: `output`, `no-check`. */
  readonly name: string
  /** The key of its value: `output`, `check`. */
  readonly key: string
}

export function flagsOf(options: Options = {}): Flag[] {
  return Object.entries(options).map(([given, spec]) => ({
    ...spec,
    name: given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    key: spec.isOff === true ? `${given[2]?.toLowerCase()}${given.slice(3)}` : given,
  }))
}

/** The options of every verb that talks to a server. */
export const GLOBALS = {
  server: text('<url>', 'the server [env: MAYFLY_SERVER]'),
  profile: text('<name>', 'the profile to use [env: MAYFLY_PROFILE]', { values: 'profiles' }),
  ca: text('<file>', 'certificate authorities to trust, PEM [env: MAYFLY_CA_FILE]'),
  json: flag('print JSON'),
  noKeychain: off('keep secrets in files [env: MAYFLY_KEYCHAIN=off]'),
}

/** For administrators' verbs only: it holds the socket of the server. */
export const DATA_DIR = {
  dataDir: text('<path>', 'data directory of the server on this machine [env: MAYFLY_DATA_DIR]'),
}

export const HELP = { help: flag('print help', 'h') }

export type Globals = ValuesOf<typeof GLOBALS & typeof DATA_DIR>

/** What a request for a credential may say besides. */
export const PARAM = {
  param: many(
    '<name=value>',
    'parameter of the kind of backend; name:=json for values other than text; may be repeated',
  ),
}

/** `-y, --yes`: do not ask. */
export const yesTo = (description: string) => ({ yes: flag(description, 'y') })
