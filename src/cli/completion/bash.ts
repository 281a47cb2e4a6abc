import type { CompletedCommand, Values } from './tree.ts'

/** For bash 3.2 and later, without the package bash-completion. */
export function bashScript(tree: readonly CompletedCommand[]): string {
  const families = tree.filter(({ words, verbs }) => words.length > 0 && verbs.length > 0)
  return `# bash completion of mayfly. Put this into ~/.bashrc:
#   source <(mayfly completion bash)
_mayfly() {
  local cur prev word at='' i
  local IFS=$'\\n'
  cur=\${COMP_WORDS[COMP_CWORD]}
  prev=\${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # "--name=value" comes as three words.
  if [ "$cur" = '=' ]; then cur=''; elif [ "$prev" = '=' ]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    case "$at:$word" in
      *:--) return ;;
      ${familyPattern(families)}${globalsPattern(tree)}) ((i++)) ;;
      *:-*) ;;
      :*) at=$word ;;
${families.map(({ words }) => `      ${words.join(' ')}:*) at="$at $word" ;;`).join('\n')}
    esac
  done
  case "$at:$prev" in
${tree.flatMap(valueCases).join('\n')}
  esac
  case "$at" in
${tree.map(commandCase).join('\n')}
  esac
}
complete -o default -F _mayfly mayfly
`
}

/** Before the verb is known only the global options take values. */
function globalsPattern(tree: readonly CompletedCommand[]): string {
  const valued = (tree[0]?.options ?? []).filter(({ values }) => values !== undefined)
  return valued.flatMap(({ names }) => names.map((name) => `:${name}`)).join('|')
}

function familyPattern(families: readonly CompletedCommand[]): string {
  return families
    .flatMap(({ words, options }) =>
      options
        .filter(({ values }) => values !== undefined)
        .flatMap(({ names }) => names.map((name) => `'${words.join(' ')}:${name}'|`)),
    )
    .join('')
}

function valueCases({ words, options }: CompletedCommand): string[] {
  const at = words.join(' ')
  return options.flatMap(({ names, values }) => {
    if (values === undefined) return []
    const pattern = names.map((name) => `'${at}:${name}'`).join('|')
    return [`    ${pattern}) ${reply(values)}; return ;;`]
  })
}

/** Nothing for files: readline completes them by itself. */
function reply(values: Values): string {
  if (values.from !== 'words') return ':'
  return `COMPREPLY=($(compgen -W ${ansi(values.words)} -- "$cur"))`
}

function commandCase({ words, verbs, options, argument }: CompletedCommand): string {
  const names = options.flatMap((option) => option.names.filter((name) => name.startsWith('--')))
  const first = [...verbs.map(({ name }) => name), ...(argument?.from === 'words' ? argument.words : [])]
  return `    '${words.join(' ')}')
      case "$cur" in
        -*) COMPREPLY=($(compgen -W ${ansi(names)} -- "$cur")) ;;
        *) ${first.length === 0 ? ':' : `COMPREPLY=($(compgen -W ${ansi(first)} -- "$cur"))`} ;;
      esac ;;`
}

/** Split at line breaks alone, as IFS says. */
const ansi = (words: readonly string[]) => `$'${words.join('\\n')}'`
