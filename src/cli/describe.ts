import { Argument, Command, CommanderError, Option } from 'commander'
import { CliError, EXIT, EXIT_MEANINGS, type ExitCode } from './failure.ts'
import { globalsOf, type Parsed, part } from './parse-plain.ts'
import type { AnyVerb, Entry, OptionSpec } from './verb.ts'

const described = new WeakMap<Command, AnyVerb>()

/** The verb that a command was made from; undefined for the program and for families. */
export function verbOf(command: Command): AnyVerb | undefined {
  return described.get(command)
}

/** The whole tree with every verb loaded: for `docs/reference/cli.md` and completion. */
export async function describeProgram(verbs: readonly Entry[]): Promise<Command> {
  const program = new Command('mayfly')
    .description('Short-lived credentials for agents: issued, ended and recorded.')
    .enablePositionalOptions()
  for (const entry of verbs) {
    if (!('verbs' in entry)) {
      program.addCommand(
        commandOf(entry.name, await entry.load()).summary(entry.summary),
        hiding(entry.hidden),
      )
      continue
    }
    const family = program
      .command(entry.name)
      .summary(entry.summary)
      .description(entry.summary)
      .enablePositionalOptions()
    for (const inner of entry.verbs)
      family.addCommand(
        commandOf(inner.name, await inner.load()).summary(inner.summary),
        hiding(inner.hidden),
      )
  }
  return program
}

const hiding = (hidden: true | undefined) => (hidden === true ? { hidden } : {})

/** A command without its action. */
export function commandOf(name: string, verb: AnyVerb): Command {
  const command = new Command(name)
    .description(verb.description)
    .helpOption('-h, --help', 'print help')
    .allowExcessArguments(false)
    .exitOverride()
  for (const { name: form, description, choices } of verb.arguments ?? []) {
    const argument = new Argument(form, description)
    command.addArgument(choices === undefined ? argument : argument.choices(choices))
  }
  for (const spec of verb.options ?? []) command.addOption(optionOf(spec))
  verb.configure?.(command)
  for (const spec of globalsOf(verb)) command.addOption(optionOf(spec).helpGroup('Options of every command:'))
  if (verb.passThrough === 'options') command.passThroughOptions()
  command.addHelpText('after', () => afterHelp(verb))
  described.set(command, verb)
  return command
}

function optionOf(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.description)
  if (spec.default !== undefined) option.default(spec.default)
  if (spec.choices !== undefined) option.choices(spec.choices)
  if (spec.repeatable === true)
    option.argParser((value: string, before: string[] | undefined) => [...(before ?? []), value])
  return option
}

function afterHelp(verb: AnyVerb): string {
  const examples = verb.examples.map(({ command, about }) => `  $ ${command}\n      ${about}`)
  const codes: ExitCode[] = [EXIT.done, EXIT.failed, EXIT.usage, ...(verb.exits ?? [])]
  const exits = codes.map((code) => `${code} ${EXIT_MEANINGS[code]}`).join(', ')
  return `\nExamples:\n${examples.join('\n')}\n\nExit codes: ${exits}.`
}

/**
 * Reads a command line. `help`: what was asked for instead. Throws `CliError` (usage) for one that is wrong.
 */
export async function parseVerb(
  words: readonly string[],
  verb: AnyVerb,
  argv: readonly string[],
): Promise<Parsed | { readonly help: string }> {
  let help = ''
  let parsed: Parsed | undefined
  const command = commandOf(`mayfly ${words.join(' ')}`, verb).configureOutput({
    writeOut: (text) => {
      help += text
    },
    writeErr: () => {},
  })
  command.action((...given: unknown[]) => {
    // What commander adds at the end: the options and the command.
    parsed = { ...part(command.opts(), verb), args: given.slice(0, -2) }
  })
  try {
    await command.parseAsync([...argv], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return { help: help.trimEnd() }
    throw wrongUsage(error, words)
  }
  return parsed ?? { help: help.trimEnd() }
}

function wrongUsage(error: CommanderError, words: readonly string[]): CliError {
  const text = error.message.replace(/^error: /, '').replaceAll('\n', ' ')
  const message = `${text[0]?.toUpperCase()}${text.slice(1)}`.replace(/[^.)]$/, '$&.')
  return new CliError('usage', message, {
    exit: EXIT.usage,
    hint: `Run \`mayfly ${words.join(' ')} --help\` to see what there is.`,
  })
}
