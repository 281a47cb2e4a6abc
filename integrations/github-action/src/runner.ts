import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'

/** What the runner of GitHub Actions gives to an action, and takes from it. */
export interface Runner {
  readonly env: Readonly<Record<string, string | undefined>>
  write(line: string): void
}

/** Its own process. */
export const runner: Runner = {
  env: process.env,
  write: (line) => void process.stdout.write(`${line}\n`),
}

/** What is wrong, and what to do. Holds no secret. */
export class ActionError extends Error {
  override readonly name = 'ActionError'
}

/** An input as `action.yml` names it, without the white space around it. */
export function inputOf({ env }: Pick<Runner, 'env'>, name: string): string {
  return (env[`INPUT_${name.toUpperCase()}`] ?? '').trim()
}

/** A variable that the runner always sets. */
export function variableOf({ env }: Pick<Runner, 'env'>, name: string): string {
  const value = env[name]
  if (value === undefined || value === '')
    throw new ActionError(`${name} is not set: is this a job of GitHub Actions?`)
  return value
}

/** As the runner reads it back (actions/runner, ActionCommand.cs): nothing of the text can begin another command. */
const escaped = (text: string) => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')

export type Level = 'error' | 'warning' | 'notice'

/** Shows a text of any origin. */
export function say({ write }: Pick<Runner, 'write'>, level: Level, text: string): void {
  write(`::${level} title=Mayfly::${escaped(text)}`)
}

/** Shorter lines, such as a brace, would make every log unreadable. */
const SHORTEST_LINE = 4

/** Keeps a secret out of the log of every step that follows. The log is masked line by line, so each line of it is one, too. */
export function mask({ write }: Pick<Runner, 'write'>, secret: string): void {
  const lines = secret.split(/\r\n|\r|\n/).map((line) => line.trim())
  const all = new Set([secret, ...lines.filter((line) => line.length >= SHORTEST_LINE)])
  for (const one of all) if (one.trim() !== '') write(`::add-mask::${escaped(one)}`)
}

/** Sets a variable for the steps that follow. */
export function exportVariable(env: Runner['env'], name: string, value: string): void {
  append(env, 'GITHUB_ENV', name, value)
}

export function setOutput(env: Runner['env'], name: string, value: string): void {
  append(env, 'GITHUB_OUTPUT', name, value)
}

/** Only the post step of this action sees it, as `STATE_name`. */
export function saveState(env: Runner['env'], name: string, value: string): void {
  append(env, 'GITHUB_STATE', name, value)
}

export function stateOf({ env }: Pick<Runner, 'env'>, name: string): string {
  return env[`STATE_${name}`] ?? ''
}

/** The delimiter is new each time, so that no value can end before its end and set another variable. */
function append(env: Runner['env'], file: string, name: string, value: string): void {
  const delimiter = `mayfly-${randomUUID()}`
  if (value.includes(delimiter)) throw new ActionError(`The value for ${name} contains its own delimiter.`)
  appendFileSync(variableOf({ env }, file), `${name}<<${delimiter}\n${value}\n${delimiter}\n`)
}
