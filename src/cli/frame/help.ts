import { EXIT, EXIT_MEANINGS, type ExitCode } from './failure.ts'
import { DATA_DIR, type Flag, flag, flagsOf, GLOBALS, HELP, type Options } from './options.ts'
import type { AnyVerb, VerbFamily, VerbGroup } from './verb.ts'

const WIDTH = 80
const ALL_EXITS = Object.values(EXIT)
const VERSION = { version: flag('print the version', 'V') }

/** What `mayfly --help` prints; it loads no verb. */
export function overview(groups: readonly VerbGroup[]): string {
  const sections = groups.map(({ title, verbs }) => {
    const shown = verbs.filter((entry) => entry.hidden !== true)
    return { title, rows: shown.map(({ name, summary }): Row => [name, summary]) }
  })
  const width = widthOf(sections.flatMap(({ rows }) => rows))
  const options = optionRows({ ...GLOBALS, ...HELP, ...VERSION })
  return paragraphs([
    'Usage: mayfly [options] <command>',
    'Short-lived credentials for agents: issued, ended and recorded.',
    ...sections.map(({ title, rows }) => section(title, rows, width)),
    section('Options of every command', options, widthOf(options)),
    exitLine(ALL_EXITS),
    'Run `mayfly <command> --help` for the usage of a command.',
  ])
}

/** What `mayfly agent --help` prints. */
export function familyOverview({ name, summary, verbs }: VerbFamily): string {
  const shown = verbs.filter((entry) => entry.hidden !== true)
  const rows = shown.map((entry): Row => [entry.name, entry.summary])
  return paragraphs([
    `Usage: mayfly ${name} <command>`,
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    section('Commands', rows, widthOf(rows)),
    `Run \`mayfly ${name} <command> --help\` for the usage of a command.`,
  ])
}

/** What `mayfly get --help` prints. */
export function helpText(words: readonly string[], verb: AnyVerb): string {
  const args = (verb.arguments ?? []).map((one): Row => {
    return [one.name.replace(/[<>[\].]/g, ''), withChoices(one.description, one.choices)]
  })
  const globals = verb.globals === false ? [] : optionRows(GLOBALS)
  const own = optionRows({ ...verb.options, ...(verb.admin === true ? DATA_DIR : {}), ...HELP })
  const width = widthOf([...args, ...own, ...globals])
  return paragraphs([
    `Usage: mayfly ${words.join(' ')} ${usageOf(verb)}`,
    wrap(verb.description, WIDTH).join('\n'),
    section('Arguments', args, width),
    section('Options', own, width),
    section('Options of every command', globals, width),
    `Examples:\n${verb.examples.map(({ command, about }) => `  $ ${command}\n      ${about}`).join('\n')}`,
    exitLine([EXIT.done, EXIT.failed, EXIT.usage, ...(verb.exits ?? [])]),
  ])
}

/** `[options] <backend>`. */
export function usageOf({ usage, arguments: args = [] }: AnyVerb): string {
  return usage ?? ['[options]', ...args.map(({ name }) => name)].join(' ')
}

type Row = [left: string, right: string]

/** The form of each option, and its meaning with its choices and its default. */
export const optionRows = (options?: Options) => flagsOf(options).map(optionRow)

function optionRow({ name, short, form, description, choices, default: preset }: Flag): Row {
  const flags = `${short === undefined ? '' : `-${short}, `}--${name}${form === undefined ? '' : ` ${form}`}`
  const shown = preset === undefined ? '' : ` [default: ${preset}]`
  return [flags, `${withChoices(description, choices)}${shown}`]
}

const withChoices = (text: string, choices: readonly string[] | undefined) =>
  choices === undefined ? text : `${text} (${choices.join(', ')})`

const paragraphs = (parts: readonly string[]) => parts.filter((part) => part !== '').join('\n\n')
const widthOf = (rows: readonly Row[]) => Math.max(...rows.map(([left]) => left.length))

function exitLine(codes: readonly ExitCode[]): string {
  return wrap(`Exit codes: ${codes.map((code) => `${code} ${EXIT_MEANINGS[code]}`).join(', ')}.`, WIDTH).join(
    '\n',
  )
}

function section(title: string, rows: readonly Row[], width: number): string {
  if (rows.length === 0) return ''
  const indent = ' '.repeat(width + 4)
  const lines = rows.map(([left, right]) => {
    const text = wrap(right, Math.max(WIDTH - indent.length, WIDTH / 2))
    return `  ${left.padEnd(width)}  ${text.join(`\n${indent}`)}`
  })
  return `${title}:\n${lines.join('\n')}`
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}
