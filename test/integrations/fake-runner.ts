import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'

const ACTION = fileURLToPath(new URL('../../integrations/github-action/', import.meta.url))

interface ActionFile {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>
  readonly runs: Readonly<Record<'using' | 'main' | 'post', string>>
}

export const actionFile = async (): Promise<ActionFile> =>
  parse(await readFile(join(ACTION, 'action.yml'), 'utf8'))

/** A command on standard output, such as `::add-mask::`, as the runner understands it. */
export interface Command {
  readonly name: string
  readonly data: string
}

export interface Step {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly commands: readonly Command[]
  /** What the step wrote to the files of the runner, by name. */
  readonly env: Readonly<Record<string, string>>
  readonly outputs: Readonly<Record<string, string>>
  readonly state: Readonly<Record<string, string>>
}

export interface Job {
  readonly env: Readonly<Record<string, string>>
  /** Below this the runner has its files. */
  readonly directory: string
  /** The program that starts the steps, in place of this process. */
  readonly by?: readonly string[]
}

/** Runs `main` or `post` of the action as the runner does, with the inputs of the step and the state of an earlier one. */
export async function runStep(
  { env, directory, by = [] }: Job,
  which: 'main' | 'post',
  inputs: Readonly<Record<string, string>>,
  state: Readonly<Record<string, string>> = {},
): Promise<Step> {
  const { inputs: known, runs } = await actionFile()
  const given = Object.entries(known).map(([name, { default: usual = '' }]) => [
    `INPUT_${name.toUpperCase()}`,
    inputs[name] ?? usual,
  ])
  const files = await mkdtemp(join(directory, 'files-'))
  const paths = { GITHUB_ENV: 'env', GITHUB_OUTPUT: 'output', GITHUB_STATE: 'state' }
  for (const name of Object.values(paths)) await writeFile(join(files, name), '')
  const [program = '', ...argv] = [...by, process.execPath, join(ACTION, runs[which])]
  const child = spawn(program, argv, {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...env,
      RUNNER_TEMP: directory,
      ...Object.fromEntries(Object.entries(paths).map(([name, file]) => [name, join(files, file)])),
      ...Object.fromEntries(given),
      ...Object.fromEntries(Object.entries(state).map(([name, value]) => [`STATE_${name}`, value])),
    },
  })
  const said = { stdout: '', stderr: '' }
  for (const where of ['stdout', 'stderr'] as const)
    child[where].setEncoding('utf8').on('data', (text: string) => {
      said[where] += text
    })
  const [code] = await once(child, 'close')
  const read = async (file: string) => readFileCommands(await readFile(join(files, file), 'utf8'))
  return {
    code,
    ...said,
    commands: said.stdout.split(/\r\n|\r|\n/).flatMap(commandIn),
    env: await read('env'),
    outputs: await read('output'),
    state: await read('state'),
  }
}

/** actions/runner, src/Runner.Common/ActionCommand.cs: `TryParseV2`, else `TryParse`, which looks anywhere in the line. */
function commandIn(line: string): Command[] {
  const [, name, data] =
    /^\s*::([^\s:]+)(?:\s[^:]*)?::([\s\S]*)$/.exec(line) ??
    /##\[([^\s\]]+)[^\]]*\]([\s\S]*)$/.exec(line) ??
    []
  if (name === undefined || data === undefined) return []
  return [{ name, data: data.replaceAll('%0D', '\r').replaceAll('%0A', '\n').replaceAll('%25', '%') }]
}

/** actions/runner, src/Runner.Worker/FileCommandManager.cs: `NAME=value`, or `NAME<<end` and lines up to `end`. Throws as it does. */
export function readFileCommands(text: string): Record<string, string> {
  const all: Record<string, string> = {}
  const lines = text.split('\n')
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    if (line === '') continue
    const [equals, heredoc] = [line.indexOf('='), line.indexOf('<<')]
    if (equals >= 0 && (heredoc < 0 || equals < heredoc)) {
      all[line.slice(0, equals)] = line.slice(equals + 1)
      continue
    }
    if (heredoc <= 0) throw new Error(`invalid format: ${line}`)
    const end = lines.indexOf(line.slice(heredoc + 2))
    if (end < 0) throw new Error('matching delimiter not found')
    all[line.slice(0, heredoc)] = lines
      .splice(0, end + 1)
      .slice(0, -1)
      .join('\n')
  }
  return all
}
