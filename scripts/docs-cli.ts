import type { Command, Option } from 'commander'
import { describeProgram, verbOf } from '../src/cli/describe.ts'
import { EXIT_MEANINGS, type ExitCode } from '../src/cli/failure.ts'
import type { AnyVerb, Group } from '../src/cli/verb.ts'
import { VERBS } from '../src/cli/verbs.ts'
import { MADE, table } from './markdown.ts'

const GROUPS: Readonly<Record<Group, string>> = {
  agent: 'For agents',
  tool: 'For other tools',
  admin: 'For administrators',
  other: 'Besides',
}

const GLOBAL_GROUP = 'Options of every command:'

/** docs/reference/cli.md: every command as its own description has it. */
export async function renderCliPage(): Promise<string> {
  const program = await describeProgram(VERBS)
  const sections: string[] = []
  for (const [group, title] of Object.entries(GROUPS)) {
    sections.push(`## ${title}`)
    for (const { name } of VERBS.filter((entry) => entry.group === group)) {
      const command = program.commands.find((one) => one.name() === name)
      if (command === undefined) throw new Error(`${name} is not in the tree`)
      const inner = command.commands.length === 0 ? [command] : command.commands
      for (const one of inner) sections.push(await commandSection(one))
    }
  }
  return `${[MADE, '# Command line', ...introduction(program), ...sections].join('\n\n')}\n`
}

function introduction(program: Command): string[] {
  const some = program.commands.flatMap((one) => [one, ...one.commands]).find(takesDataDir)
  const globals = some?.options.filter(({ helpGroupHeading }) => helpGroupHeading === GLOBAL_GROUP) ?? []
  return [
    'Results go to standard output, everything else to standard error. With `--json` the result is JSON of the shape that stands with each command, and an error is `{"error": {"code", "message", "hint"}}` on standard error. An error is one line that says what happened and what to do.',
    'How a command ends:',
    table(['Code', 'Meaning'], Object.entries(EXIT_MEANINGS)),
    'All commands use 0, 1 and 2; those that use others say so below. `mayfly run` leaves with the code of its command.',
    'Options of every command:',
    table(['Option', 'Meaning'], globals.map(optionRow)),
    'The login is `MAYFLY_TOKEN`, else `MAYFLY_CLIENT_ID` with `MAYFLY_CLIENT_SECRET` (each also as a file: `MAYFLY_TOKEN_FILE`, `MAYFLY_CLIENT_SECRET_FILE`), else that of the profile. `NO_COLOR` turns colours off. The commands for administrators use, on the machine of the server and where no login is named, its unix socket, the token file in its data directory, or the local rule; else the login, which then needs the admin scope.',
  ]
}

const takesDataDir = (command: Command) => command.options.some(({ long }) => long === '--data-dir')

async function commandSection(command: Command): Promise<string> {
  const verb = verbOf(command)
  if (verb === undefined) throw new Error(`${command.name()} has no verb`)
  const own = command.options.filter(({ helpGroupHeading }) => helpGroupHeading !== GLOBAL_GROUP)
  const words = wordsOf(command)
  const parts = [
    `### mayfly ${words}`,
    command.description(),
    `    mayfly ${words} ${command.usage()}`.trimEnd(),
    argumentTable(verb),
    own.length === 0 ? '' : table(['Option', 'Meaning'], own.map(optionRow)),
    verb.globals === false ? 'It takes none of the options of every command.' : '',
    verb.examples.map(({ about, command: line }) => `    # ${about}\n    ${line}`).join('\n\n'),
    await jsonLine(verb),
    exitLine(verb),
  ]
  return parts.filter((part) => part !== '').join('\n\n')
}

function wordsOf(command: Command): string {
  const { parent } = command
  return parent === null || parent.parent === null ? command.name() : `${parent.name()} ${command.name()}`
}

function argumentTable(verb: AnyVerb): string {
  if (verb.arguments === undefined || verb.arguments.length === 0) return ''
  return table(
    ['Argument', 'Meaning'],
    verb.arguments.map(({ name, description, choices }) => [
      `\`${name}\``,
      choices === undefined ? description : `${description} (${choices.join(', ')})`,
    ]),
  )
}

function optionRow(option: Option): string[] {
  const choices = option.argChoices === undefined ? '' : ` (${option.argChoices.join(', ')})`
  const preset =
    option.defaultValue === undefined || option.defaultValue === true || option.negate
      ? ''
      : ` [default: ${String(option.defaultValue)}]`
  return [`\`${option.flags}\``, `${option.description}${choices}${preset}`]
}

async function jsonLine(verb: AnyVerb): Promise<string> {
  if (verb.json === undefined) return ''
  if (typeof verb.json === 'string')
    return `With \`--json\`: ${/^[[{]/.test(verb.json) ? `\`${verb.json}\`` : verb.json}`
  const schema = (await verb.json()) as Shape
  const words = schema.description === undefined ? '' : ` (${schema.description})`
  return `With \`--json\`: \`${shapeOf(schema)}\`${words}`
}

function exitLine(verb: AnyVerb): string {
  const codes = (verb.exits ?? []) as readonly ExitCode[]
  if (codes.length === 0) return ''
  return `Exit codes besides 0, 1 and 2: ${codes.map((code) => `${code} ${EXIT_MEANINGS[code]}`).join(', ')}.`
}

interface Shape {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Shape[]
  readonly items?: Shape
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly description?: string
}

/** A JSON Schema in one line: `{id: string, expires_at: time | null, fields?: object}`. */
function shapeOf(schema: Shape): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.anyOf !== undefined) return schema.anyOf.map(shapeOf).join(' | ')
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  const named = types.map((type) => (type === 'null' ? 'null' : typeName(type, schema)))
  return named.length === 0 && schema.enum !== undefined
    ? schema.enum.map((one) => JSON.stringify(one)).join(' | ')
    : named.join(' | ') || 'any'
}

const MOST_CHOICES = 8

function typeName(type: string, schema: Shape): string {
  if (type === 'string' && schema.format === 'date-time') return 'time'
  if (schema.enum !== undefined && schema.enum.length <= MOST_CHOICES)
    return schema.enum.map((one) => JSON.stringify(one)).join(' | ')
  if (type === 'array') return arrayName(schema.items)
  if (type !== 'object' || schema.properties === undefined) return type
  const fields = Object.entries(schema.properties).map(
    ([name, field]) => `${name}${schema.required?.includes(name) === true ? '' : '?'}: ${shapeOf(field)}`,
  )
  return `{${fields.join(', ')}}`
}

function arrayName(items: Shape | undefined): string {
  const inner = items === undefined ? 'any' : shapeOf(items)
  return inner.includes(' | ') && !inner.startsWith('{') ? `(${inner})[]` : `${inner}[]`
}
