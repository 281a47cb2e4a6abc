import type { CompletedCommand, CompletedOption, Values } from './tree.ts'

/** For fish 3, to be sourced or put into `~/.config/fish/completions/mayfly.fish`. */
export function fishScript(tree: readonly CompletedCommand[]): string {
  const families = tree.filter(({ words, verbs }) => words.length > 0 && verbs.length > 0)
  const valued = (tree[0]?.options ?? []).filter(({ values }) => values !== undefined)
  return `# fish completion of mayfly. Put this into ~/.config/fish/config.fish:
#   mayfly completion fish | source
function __mayfly_at
    set -l at
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip -eq 1
            set skip 0
        else if contains -- $word ${valued.flatMap(({ names }) => names).join(' ')}
            set skip 1
        else if string match -q -- '-*' $word
            continue
        else if test -z "$at"
            set at $word
        else if contains -- "$at" ${families.map(({ words }) => words.join(' ')).join(' ')}
            set at "$at $word"
        end
    end
    echo $at
end
function __mayfly_is
    test (__mayfly_at) = "$argv[1]"
end
complete -c mayfly -f
${tree.flatMap(commandLines).join('\n')}
`
}

function commandLines({ words, verbs, options, argument }: CompletedCommand): string[] {
  const at = words.join(' ')
  const start = `complete -c mayfly -n ${quoted(`__mayfly_is ${quoted(at)}`)}`
  return [
    ...verbs.map(({ name, description }) => `${start} -a ${name} -d ${quoted(description)}`),
    ...(argument === undefined ? [] : argumentLine(start, argument)),
    ...options.map((option) => `${start}${optionWords(option)} -d ${quoted(option.description)}`),
  ]
}

function argumentLine(start: string, values: Values): string[] {
  if (values.from === 'files') return [`${start} -F`]
  return values.from === 'words' ? [`${start} -a ${quoted(values.words.join(' '))}`] : []
}

function optionWords({ names, values }: CompletedOption): string {
  const flags = names.map((name) => (name.startsWith('--') ? ` -l ${name.slice(2)}` : ` -s ${name.slice(1)}`))
  if (values === undefined) return flags.join('')
  if (values.from === 'files') return `${flags.join('')} -r -F`
  return `${flags.join('')} -x${values.from === 'words' ? ` -a ${quoted(values.words.join(' '))}` : ''}`
}

const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
