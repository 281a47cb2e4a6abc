import { EXIT, EXIT_MEANINGS, type ExitCode } from './failure.ts'
import { DATA_DIR, type Flag, flag, flagsOf, GLOBALS, HELP, type Options } from './options.ts'
import type { AnyVerb, Example, VerbFamily, VerbGroup } from './verb.ts'

/** Of the reference, of the manual, and where the terminal does not say. */
const WIDTH = 80
/** Lines that are longer are hard to read, and shorter ones hold no option. */
const [NARROWEST, WIDEST] = [40, 120]
/** A meaning that has less room than this stands below its option. */
const LEAST_RIGHT = 24
const ALL_EXITS = Object.values(EXIT)
const VERSION = { version: flag('print the version', 'V') }

/** What `mayfly --help` prints; it loads no verb. */
export function overview(groups: readonly VerbGroup[], columns = WIDTH): string {
  const within = widthIn(columns)
  const sections = groups.map(({ title, verbs }) => {
    const shown = verbs.filter((entry) => entry.hidden !== true)
    return { title, rows: shown.map(({ name, summary }): Row => [name, summary]) }
  })
  const width = widthOf(sections.flatMap(({ rows }) => rows))
  const options = optionRows({ ...GLOBALS, ...HELP, ...VERSION })
  return paragraphs([
    'Usage: mayfly [options] <command>',
    wrap('Short-lived credentials for agents: issued, ended and recorded.', within).join('\n'),
    ...sections.map(({ title, rows }) => section(title, rows, width, within)),
    section('Options of every command', options, widthOf(options), within),
    exitLine(ALL_EXITS, within),
    wrap('Run `mayfly <command> --help` for the usage of a command.', within).join('\n'),
  ])
}

/** What `mayfly agent --help` prints. */
export function familyOverview({ name, summary, verbs }: VerbFamily, columns = WIDTH): string {
  const within = widthIn(columns)
  const shown = verbs.filter((entry) => entry.hidden !== true)
  const rows = shown.map((entry): Row => [entry.name, entry.summary])
  return paragraphs([
    `Usage: mayfly ${name} <command>`,
    `${summary[0]?.toUpperCase()}${summary.slice(1)}.`,
    section('Commands', rows, widthOf(rows), within),
    wrap(`Run \`mayfly ${name} <command> --help\` for the usage of a command.`, within).join('\n'),
  ])
}

/** What `mayfly get --help` prints. */
export function helpText(words: readonly string[], verb: AnyVerb, columns = WIDTH): string {
  const within = widthIn(columns)
  const args = (verb.arguments ?? []).map((one): Row => {
    return [one.name.replace(/[<>[\].]/g, ''), withChoices(one.description, one.choices)]
  })
  const globals = verb.globals === false ? [] : optionRows(GLOBALS)
  const own = optionRows({ ...verb.options, ...(verb.admin === true ? DATA_DIR : {}), ...HELP })
  const width = widthOf([...args, ...own, ...globals])
  return paragraphs([
    wrap(`Usage: mayfly ${words.join(' ')} ${usageOf(verb)}`, within).join('\n         '),
    wrap(verb.description, within).join('\n'),
    section('Arguments', args, width, within),
    section('Options', own, width, within),
    section('Options of every command', globals, width, within),
    `Examples:\n${verb.examples.map((one) => exampleText(one, within)).join('\n')}`,
    exitLine([EXIT.done, EXIT.failed, EXIT.usage, ...(verb.exits ?? [])], within),
  ])
}

/** A command stays on one line: people copy it. */
function exampleText({ command, about }: Example, within: number): string {
  return `  $ ${command}\n      ${wrap(about, within - 6).join('\n      ')}`
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

/** The columns to fill on a terminal of this width; 0 says that it does not know. */
function widthIn(columns: number): number {
  return columns === 0 ? WIDTH : Math.min(Math.max(columns, NARROWEST), WIDEST)
}

function exitLine(codes: readonly ExitCode[], within: number): string {
  const meanings = codes.map((code) => `${code} ${EXIT_MEANINGS[code]}`)
  return wrap(`Exit codes: ${meanings.join(', ')}.`, within).join('\n')
}

function section(title: string, rows: readonly Row[], width: number, within: number): string {
  if (rows.length === 0) return ''
  const room = within - width - 4
  const isBelow = within < WIDTH && room < LEAST_RIGHT
  const indent = ' '.repeat(isBelow ? 6 : width + 4)
  const lines = rows.map(([left, right]) => {
    const text = wrap(right, isBelow ? within - 6 : Math.max(room, within < WIDTH ? 0 : WIDTH / 2))
    return `  ${isBelow ? `${left}\n${indent}` : `${left.padEnd(width)}  `}${text.join(`\n${indent}`)}`
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
