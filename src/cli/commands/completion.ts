import { basename } from 'node:path'
import { installScript } from '../completion/install.ts'
import { SCRIPTS, type Shell } from '../completion/scripts.ts'
import { usage } from '../frame/failure.ts'
import { defineVerb } from '../frame/verb.ts'

export const bash = scriptVerb('bash', 'source <(mayfly completion bash)', 'in ~/.bashrc')
export const zsh = scriptVerb('zsh', 'source <(mayfly completion zsh)', 'in ~/.zshrc, after compinit')
export const fish = scriptVerb('fish', 'mayfly completion fish | source', 'in ~/.config/fish/config.fish')

function scriptVerb(shell: Shell, command: string, about: string) {
  return defineVerb({
    description: `Prints the script that completes commands, options and names in ${shell}.`,
    examples: {
      [command]: about,
    },
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
