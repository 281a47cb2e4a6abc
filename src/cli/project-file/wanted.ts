import type { IssueRequest } from '../../client/wire.ts'
import type { Template } from './template.ts'

/** A file in the private directory of a run, and the variable that holds its path. */
export interface FileWish {
  readonly variable: string
  readonly fileName: string
  readonly content: Template
}

/** One credential that a command needs, and how it gets it. */
export interface WantedCredential {
  /** Of the project file, or the backend. */
  readonly name: string
  readonly request: IssueRequest
  /** Each part in a variable of its own: `<NAME>_PASSWORD`, as `mayfly get -o env` names them. */
  readonly isSpread: boolean
  readonly env: readonly { readonly variable: string; readonly value: Template }[]
  readonly files: readonly FileWish[]
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

/** They say which program runs, or what is loaded into it: a project file must not turn a command into another. */
const STEERING = new RegExp(
  `^(?:${[
    'PATH|IFS|ENV|PS[0-4]|PROMPT_COMMAND|BASH_ENV|BASH_FUNC_.*|SHELLOPTS|LD_.*|DYLD_.*|GCONV_PATH',
    'NODE_(?:OPTIONS|PATH)|PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT)|PERL5?(?:LIB|OPT|DB)|RUBY(?:LIB|OPT)|JAVA_TOOL_OPTIONS',
    'GIT_(?:SSH|SSH_COMMAND|EXEC_PATH|EXTERNAL_DIFF|PROXY_COMMAND|TEMPLATE_DIR|ASKPASS|DIR|CONFIG.*)|SSH_ASKPASS',
    '(?:.*_)?(?:EDITOR|PAGER|RSH)|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|MAYFLY_.*',
  ].join('|')})$`,
)

/** Why a variable cannot be given to a command; undefined when it can. */
export function faultOfVariable(name: string): string | undefined {
  if (!NAME.test(name)) return 'is not the name of a variable'
  if (STEERING.test(name.toUpperCase())) return 'is a variable that is not given'
  return undefined
}
