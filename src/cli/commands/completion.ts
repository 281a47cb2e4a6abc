import { SCRIPTS, type Shell } from '../completion/scripts.ts'
import { defineVerb } from '../frame/verb.ts'

export const verb = defineVerb<object, [shell: Shell]>({
  description: 'Prints the script that completes commands and options in a shell.',
  arguments: [{ name: '<shell>', description: 'the shell', choices: ['bash', 'zsh', 'fish'] }],
  examples: [
    { command: 'source <(mayfly completion bash)', about: 'in ~/.bashrc' },
    { command: 'source <(mayfly completion zsh)', about: 'in ~/.zshrc, after compinit' },
    { command: 'mayfly completion fish | source', about: 'in ~/.config/fish/config.fish' },
  ],
  json: '{"shell", "script"}',
  run: (context, _options, shell) =>
    context.out.show({ shell, script: SCRIPTS[shell] }, () => SCRIPTS[shell].trimEnd()),
})
