export type Shell = 'bash' | 'zsh' | 'fish'

/**
 * Each script hands the words of the line to `mayfly __complete`, which prints a candidate a line (its word, a tab,
 * its description), or `:files` where the shell completes a path.
 */
export const SCRIPTS: Readonly<Record<Shell, string>> = {
  // For bash 3.2 and later, without the package bash-completion.
  bash: `# bash completion for mayfly. Put this into ~/.bashrc:
#   source <(mayfly completion bash)
_mayfly() {
  local IFS=$'\\n'
  COMPREPLY=($(mayfly __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  case "\${COMPREPLY[0]}" in
    '' | :files) COMPREPLY=() ;;
    *) COMPREPLY=("\${COMPREPLY[@]%%$'\\t'*}") ;;
  esac
}
complete -o default -F _mayfly mayfly
`,
  zsh: `#compdef mayfly
# zsh completion for mayfly. Put this into ~/.zshrc, after compinit:
#   source <(mayfly completion zsh)
_mayfly() {
  local -a found
  found=("\${(@f)$(mayfly __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $found[1] == :files ]]; then _files; return; fi
  found=("\${(@)found//:/\\\\:}")
  found=("\${(@)found/$'\\t'/:}")
  _describe mayfly found
}
if [ "$funcstack[1]" = _mayfly ]; then _mayfly "$@"; else compdef _mayfly mayfly; fi
`,
  fish: `# fish completion for mayfly. Put this into ~/.config/fish/config.fish:
#   mayfly completion fish | source
function __mayfly_complete
    set -l current (commandline -ct)
    set -l found (mayfly __complete -- (commandline -opc)[2..-1] "$current" 2>/dev/null)
    if test "$found[1]" = :files
        __fish_complete_path "$current"
    else
        printf '%s\\n' $found
    end
end
complete -c mayfly -f -a '(__mayfly_complete)'
`,
}
