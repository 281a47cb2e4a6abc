type Env = Readonly<Record<string, string | undefined>>

/**
 * The variables that lead a program's whole HTTPS traffic to the forward proxy. `url` carries the login of the run; `bundle` is
 * the path of what `writeBundle` wrote. `env`: what the child will have otherwise.
 */
export function forwardVariables(_url: string, _bundle: string, _env: Env): Record<string, string> {
  throw new Error('not built yet')
}
