import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { shellQuote } from '../../domain/formats/shell-word.ts'
import { SCRIPTS, type Shell } from '../completion/scripts.ts'
import { CliError, usage } from '../frame/failure.ts'
import { NO_HOME } from '../frame/surroundings.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { dataPath } from '../session/paths.ts'

export const bash = scriptVerb('bash', 'source <(mayfly completion bash)', 'in ~/.bashrc')
export const zsh = scriptVerb('zsh', 'source <(mayfly completion zsh)', 'in ~/.zshrc, after compinit')
export const fish = scriptVerb('fish', 'mayfly completion fish | source', 'in ~/.config/fish/config.fish')

function scriptVerb(shell: Shell, command: string, about: string) {
  return defineVerb({
    description: `Prints the script that completes commands, options and names in ${shell}.`,
    examples: { [command]: about },
    json: '{"shell", "script"}',
    run: (context) => context.out.show({ shell, script: SCRIPTS[shell] }, () => SCRIPTS[shell].trimEnd()),
  })
}

export const install = defineVerb({
  description:
    'Sets up completion for your shell: writes the script, and for bash and zsh a line to ~/.bashrc or ~/.zshrc that reads it. Running it again brings the script up to date.',
  arguments: [
    {
      name: '[shell]',
      description: 'by default the one that $SHELL names',
      choices: ['bash', 'zsh', 'fish'],
    },
  ],
  examples: {
    'mayfly completion install': 'for the shell that you use',
    'mayfly completion install zsh': 'for another',
  },
  json: '{"shell", "script": path, "read_by": path or null}',
  run: async (context, _options, given) => {
    const shell = given ?? shellOf(context.env['SHELL'])
    const { script, readBy } = await installScript(context, shell)
    const line = readBy === undefined ? '' : ` ${readBy} reads it.`
    await context.out.report(
      { shell, script, read_by: readBy ?? null },
      `The completion script is ${script}.${line} Start a new shell to use it.`,
    )
  },
})

function shellOf(path: string | undefined): Shell {
  const name = basename(path ?? '')
  if (name === 'bash' || name === 'zsh' || name === 'fish') return name
  throw usage(
    path === undefined || path === '' ? 'SHELL is not set.' : 'Your shell is neither bash, zsh nor fish.',
    'Name one: mayfly completion install bash.',
  )
}

interface Installed {
  readonly script: string
  /** The file of the user that reads the script; undefined if the shell finds it by itself. */
  readonly readBy: string | undefined
}

/** Writes the script, and makes the shell read it. Changes nothing else, however often it is called. Throws `CliError`. */
async function installScript(context: Context, shell: Shell): Promise<Installed> {
  if (context.home === NO_HOME)
    throw new CliError('no_home', 'There is no home directory to install it in.', { hint: 'Set HOME.' })
  const script = scriptPath(context, shell)
  await mkdir(dirname(script), { recursive: true })
  await writeFile(script, SCRIPTS[shell])
  if (shell === 'fish') return { script, readBy: undefined }
  const readBy = startFile(context, shell)
  const before = await readFile(readBy, 'utf8').catch(() => '')
  const line = sourceLine(shell, script)
  if (!before.split('\n').includes(line)) {
    const gap = before === '' || before.endsWith('\n') ? '' : '\n'
    await appendFile(
      readBy,
      `${gap}# Completion for mayfly, added by \`mayfly completion install\`.\n${line}\n`,
    )
  }
  return { script, readBy }
}

/** fish reads every file in this directory by itself. */
function scriptPath(context: Context, shell: Shell): string {
  if (shell !== 'fish') return dataPath(context, `completion.${shell}`)
  const config = context.env['XDG_CONFIG_HOME'] ?? ''
  return join(config.startsWith('/') ? config : join(context.home, '.config'), 'fish/completions/mayfly.fish')
}

function startFile({ env, home }: Context, shell: 'bash' | 'zsh'): string {
  if (shell === 'bash') return join(home, '.bashrc')
  const directory = env['ZDOTDIR'] ?? ''
  return join(directory.startsWith('/') ? directory : home, '.zshrc')
}

/** A removed script is no error in each new shell. The script for zsh needs compinit, which may not have run. */
function sourceLine(shell: 'bash' | 'zsh', script: string): string {
  const path = shellQuote(script)
  const needs =
    shell === 'zsh' ? '(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }; ' : ''
  return `if [ -r ${path} ]; then ${needs}source ${path}; fi`
}
