import { defineVerb } from '../frame/verb.ts'

type Shell = 'bash' | 'zsh' | 'fish'

export const verb = defineVerb<object, [shell: Shell]>({
  description:
    'Prints the script that completes commands and options in a shell. It asks no server and starts no program.',
  arguments: [{ name: '<shell>', description: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] }],
  examples: [
    { command: 'source <(mayfly completion bash)', about: 'in ~/.bashrc' },
    { command: 'source <(mayfly completion zsh)', about: 'in ~/.zshrc, after compinit' },
    { command: 'mayfly completion fish | source', about: 'in ~/.config/fish/config.fish' },
  ],
  json: '{"shell", "script"}',
  run: async (context, _options, shell) => {
    const { readTree } = await import('../completion/tree.ts')
    const tree = await readTree(context.verbs)
    const script = await scriptOf(shell, tree)
    await context.out.show({ shell, script }, () => script.trimEnd())
  },
})

async function scriptOf(
  shell: Shell,
  tree: Awaited<ReturnType<typeof import('../completion/tree.ts')['readTree']>>,
): Promise<string> {
  switch (shell) {
    case 'bash':
      return (await import('../completion/bash.ts')).bashScript(tree)
    case 'zsh':
      return (await import('../completion/zsh.ts')).zshScript(tree)
    case 'fish':
      return (await import('../completion/fish.ts')).fishScript(tree)
  }
}
