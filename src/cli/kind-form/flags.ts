import { shellWord } from '../../domain/formats/shell-word.ts'
import { usage } from '../frame/failure.ts'
import type { Flag } from '../frame/options.ts'
import { parseLine } from '../frame/parse.ts'
import { readSecretFile } from '../frame/prompt.ts'
import type { Context } from '../frame/verb.ts'
import type { KindField } from './fields.ts'
import { readValue } from './values.ts'

/** Flags of the verb itself: a field of the same name gets the kind as a prefix. */
const TAKEN = new Set(
  'server profile ca json no-keychain keychain data-dir help config description default-ttl max-ttl allow-scope rate max-active rotate-root-after uses no-check check unset allow-any-scope name'.split(
    ' ',
  ),
)

/** One flag of a field. With `file`, its value names a file. */
export interface KindFlag {
  readonly flag: string
  readonly field: KindField
  readonly file: boolean
}

/** The flags for a kind's configuration: `--host <text>`, `--password-file <path>`, `--local`. */
export function flagsOf(type: string, fields: readonly KindField[]): KindFlag[] {
  const used = new Set(TAKEN)
  const free = (wanted: string) => {
    let flag = wanted
    while (used.has(flag)) flag = `${kebab(type)}-${flag}`
    used.add(flag)
    return flag
  }
  return fields.flatMap((field) => {
    const name = kebab(field.name)
    const flags: KindFlag[] = field.secret ? [] : [{ flag: free(name), field, file: false }]
    if (field.secret || field.long) flags.push({ flag: free(fileFlag(name, flags[0])), field, file: true })
    return flags
  })
}

/** `--postgres-ca` is accompanied by `--postgres-ca-file`. */
const fileFlag = (name: string, plain: KindFlag | undefined) => `${plain?.flag ?? name}-file`

const kebab = (name: string) => name.replaceAll('_', '-').replace(/[^A-Za-z0-9-]/g, '-')

/** The form shown in help and in the list of kinds: `--host <text>`. */
export function shapeOf({ flag, field, file }: KindFlag): string {
  if (file) return `--${flag} <path>`
  if (field.type === 'boolean') return `--[no-]${flag}`
  return `--${flag} <${argumentOf(field)}>`
}

function argumentOf({ type, choices }: KindField): string {
  if (choices !== undefined) return choices.join('|')
  return type === 'list' || type === 'text or list' ? 'text' : type
}

export interface Given {
  readonly name: string | undefined
  /** By field, ready to send. */
  readonly config: Readonly<Record<string, unknown>>
}

/**
 * Reads the words after the type: at most one name, and the flags of the kind. Throws `CliError` (usage) for unknown
 * flags and for a secret on the command line.
 */
export async function readGiven(
  context: Context,
  type: string,
  fields: readonly KindField[],
  argv: readonly string[],
): Promise<Given> {
  const flags = flagsOf(type, fields)
  refuseSecrets(flags, argv)
  const { options, name } = await parse(type, flags, argv)
  const config: Record<string, unknown> = {}
  for (const one of flags) {
    const given = options[one.flag]
    if (given === undefined) continue
    if (Object.hasOwn(config, one.field.name))
      throw usage(`The field ${one.field.name} is set twice, as text and as a file.`, 'Keep one of them.')
    const raw = one.file ? await readSecretFile(context, String(given)) : given
    config[one.field.name] = readValue(one.field, raw, `--${one.flag}`)
  }
  return { name, config }
}

async function parse(type: string, flags: readonly KindFlag[], argv: readonly string[]) {
  const grammar = {
    options: flags.flatMap(optionsOf),
    arguments: [{ name: '[name]', description: '' }],
    hint: `\`mayfly kind show ${type}\` lists the flags of this kind.`,
  }
  const { options, args } = await parseLine(grammar, argv)
  return { options, name: args[0] as string | undefined }
}

function optionsOf({ flag, field, file }: KindFlag): Flag[] {
  const option = { name: flag, key: flag, description: '' }
  if (file) return [{ ...option, form: '<path>' }]
  if (field.type === 'boolean') return [option, { ...option, name: `no-${flag}`, isOff: true }]
  const isList = field.type === 'list' || field.type === 'text or list'
  return [
    {
      ...option,
      form: '<value>',
      choices: field.choices,
      ...(isList ? { repeatable: true as const } : {}),
    },
  ]
}

/** `--password hunter2` would be in the shell history and readable by every user of this machine. */
function refuseSecrets(flags: readonly KindFlag[], argv: readonly string[]): void {
  for (const { flag, field } of flags) {
    if (!field.secret) continue
    const plain = `--${flag.replace(/-file$/, '')}`
    if (argv.some((one) => one === plain || one.startsWith(`${plain}=`)))
      throw usage(
        `${plain} is a secret, and other users can read command lines.`,
        `Use --${flag} PATH, or --${flag} - for standard input.`,
      )
  }
}

/** The answers as shell flags, for repeating the command without the questions. Omits secrets. */
export function asFlags(
  type: string,
  fields: readonly KindField[],
  config: Readonly<Record<string, unknown>>,
): string {
  return flagsOf(type, fields)
    .filter(({ field, file }) => config[field.name] !== undefined && file === field.secret)
    .flatMap(({ flag, field }) => {
      const value = config[field.name]
      if (field.secret) return [`--${flag} FILE`]
      if (typeof value === 'boolean') return [value ? `--${flag}` : `--no-${flag}`]
      const values = Array.isArray(value) && field.type !== 'json' ? value : [value]
      return values.map(
        (one) => `--${flag} ${shellWord(typeof one === 'string' ? one : JSON.stringify(one))}`,
      )
    })
    .join(' ')
}
