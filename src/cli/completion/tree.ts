import type { Command, Option } from 'commander'
import { describeProgram } from '../frame/describe.ts'
import type { Entry } from '../frame/verb.ts'

/** What may follow an option or stand for an argument. */
export type Values =
  | { readonly from: 'words'; readonly words: readonly string[] }
  | { readonly from: 'files' | 'text' }

export interface CompletedOption {
  /** `--ttl`, `-t`. */
  readonly names: readonly string[]
  readonly description: string
  /** Undefined: it takes no value. */
  readonly values: Values | undefined
}

export interface CompletedCommand {
  /** Empty for the program itself. */
  readonly words: readonly string[]
  readonly verbs: readonly { readonly name: string; readonly description: string }[]
  readonly options: readonly CompletedOption[]
  /** What its first argument may be. */
  readonly argument: Values | undefined
}

/** The program, its families and its verbs, without hidden ones. */
export async function readTree(verbs: readonly Entry[]): Promise<CompletedCommand[]> {
  const program = await describeProgram(verbs)
  const first = program.commands.flatMap((command) => leaves(command, []))[0]
  const globals = first?.options.filter(({ names }) => GLOBAL.has(names[0] ?? '')) ?? []
  return walk(program, []).map((command) =>
    command.verbs.length > 0 ? { ...command, options: globals } : command,
  )
}

/** Those that may stand before the verb. */
const GLOBAL = new Set(['--server', '--profile', '--ca', '--json', '--no-keychain', '--help'])

function walk(command: Command, words: readonly string[]): CompletedCommand[] {
  const visible = visibleCommands(command)
  return [
    complete(command, words, visible),
    ...visible.flatMap((inner) => walk(inner, [...words, inner.name()])),
  ]
}

function leaves(command: Command, words: readonly string[]): CompletedCommand[] {
  return walk(command, words).filter(({ verbs }) => verbs.length === 0)
}

function visibleCommands(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((inner) => inner.name() !== 'help')
}

function complete(command: Command, words: readonly string[], verbs: readonly Command[]): CompletedCommand {
  const help = command.createHelp()
  const [argument] = command.registeredArguments
  return {
    words,
    verbs: verbs.map((inner) => ({ name: inner.name(), description: firstSentence(inner.summary()) })),
    options: help.visibleOptions(command).map((option) => ({
      names: [option.long, option.short].filter((name) => name !== undefined && name !== null),
      description: firstSentence(option.description),
      values: valuesOf(option),
    })),
    argument: argument === undefined ? undefined : describeValues(argument.name(), argument.argChoices),
  }
}

function valuesOf(option: Option): Values | undefined {
  if (!option.required && !option.optional) return undefined
  return describeValues(/[<[]([^>\]]+)/.exec(option.flags)?.[1] ?? '', option.argChoices)
}

function describeValues(name: string, choices: readonly string[] | undefined): Values {
  if (choices !== undefined) return { from: 'words', words: choices }
  return { from: /file|path|dir|socket/i.test(name) ? 'files' : 'text' }
}

/** One line, for the shells that show it. */
function firstSentence(text: string): string {
  return (text.split('\n')[0] ?? '')
    .replace(/\. .*$/s, '')
    .replace(/\.$/, '')
    .trim()
}
