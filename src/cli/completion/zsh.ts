import type { CompletedCommand, Values } from './tree.ts'

/** For zsh 5, to be sourced or put into a directory of `fpath` as `_mayfly`. */
export function zshScript(tree: readonly CompletedCommand[]): string {
  const families = tree.filter(({ words, verbs }) => words.length > 0 && verbs.length > 0)
  const valued = (tree[0]?.options ?? []).filter(({ values }) => values !== undefined)
  const globals = valued.flatMap(({ names }) => names).join('|')
  return `#compdef mayfly
# zsh completion of mayfly. Put this into ~/.zshrc, after compinit:
#   source <(mayfly completion zsh)
_mayfly() {
  local at='' word prev
  local -a shown
  integer i
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    case "$at:$word" in
      *:--) _default; return ;;
      (${['', ...families.map(({ words }) => words.join(' '))].map((at) => at || "''").join('|')}):(${globals})) ((i++)) ;;
      *:-*) ;;
      :*) at=$word ;;
${families.map(({ words }) => `      ${words.join(' ')}:*) at="$at $word" ;;`).join('\n')}
    esac
  done
  prev=$words[CURRENT-1]
  case "$at:$prev" in
${tree.flatMap(valueCases).join('\n')}
  esac
  case "$at" in
${tree.map(commandCase).join('\n')}
    *) _default ;;
  esac
}
if [ "$funcstack[1]" = _mayfly ]; then _mayfly "$@"; else compdef _mayfly mayfly; fi
`
}

function valueCases({ words, options }: CompletedCommand): string[] {
  const at = words.join(' ')
  return options.flatMap(({ names, values }) => {
    if (values === undefined) return []
    const pattern = names.map((name) => `${quoted(`${at}:${name}`)}`).join('|')
    return [`    ${pattern}) ${reply(values)}; return ;;`]
  })
}

function reply(values: Values): string {
  if (values.from === 'words') return `compadd -- ${values.words.map(quoted).join(' ')}`
  return values.from === 'files' ? '_files' : '_message value'
}

function commandCase({ words, verbs, options, argument }: CompletedCommand): string {
  const flags = options.flatMap(({ names, description }) =>
    names.filter((name) => name.startsWith('--')).map((name) => entry(name, description)),
  )
  const first =
    verbs.length > 0
      ? `shown=(${verbs.map(({ name, description }) => entry(name, description)).join(' ')}); _describe command shown`
      : argument === undefined
        ? ':'
        : reply(argument)
  return `    ${quoted(words.join(' '))})
      if [[ $words[CURRENT] == -* ]]; then
        shown=(${flags.join(' ')}); _describe -o option shown
      else
        ${first}
      fi ;;`
}

/** \`name:description\`, where a colon would end the name. */
const entry = (name: string, description: string) => quoted(`${name.replaceAll(':', '\\:')}:${description}`)
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
