import type { IssueRequest } from '../../client/wire.ts'
import type { Template } from './template.ts'

/** A file in the private directory of a run and the variable that holds its path. */
export interface RequestedFile {
  readonly variable: string
  readonly fileName: string
  readonly content: Template
}

/** One credential that a command needs, and how it is delivered. */
export interface RequestedCredential {
  /** Its name in the project file, or the backend's name. */
  readonly name: string
  readonly request: IssueRequest
  /** Each field in a variable of its own, such as `<NAME>_PASSWORD`; the names are those of `mayfly get -o env`. */
  readonly isSpread: boolean
  readonly env: readonly { readonly variable: string; readonly value: Template }[]
  readonly files: readonly RequestedFile[]
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

/** These decide which program runs or what it loads: a project file must not turn a command into another. */
const STEERING = new RegExp(
  `^(?:${[
    'PATH|IFS|ENV|PS[0-4]|PROMPT_COMMAND|BASH_ENV|BASH_FUNC_.*|SHELLOPTS|LD_.*|DYLD_.*|GCONV_PATH',
    'NODE_(?:OPTIONS|PATH)|PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT)|PERL5?(?:LIB|OPT|DB)|RUBY(?:LIB|OPT)|JAVA_TOOL_OPTIONS',
    'GIT_(?:SSH|SSH_COMMAND|EXEC_PATH|EXTERNAL_DIFF|PROXY_COMMAND|TEMPLATE_DIR|ASKPASS|DIR|CONFIG.*)|SSH_ASKPASS',
    '(?:.*_)?(?:EDITOR|PAGER|RSH)|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|MAYFLY_.*',
  ].join('|')})$`,
)

/** Why a credential may not be put into this variable, or undefined. */
export function faultOfVariable(name: string): string | undefined {
  if (!NAME.test(name)) return 'is not a valid variable name'
  if (STEERING.test(name.toUpperCase())) return 'is a variable that mayfly does not set'
  return undefined
}
