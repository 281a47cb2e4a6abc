import type { IssueRequest } from '../../client/wire.ts'
import { readAssignments } from '../frame/assignments.ts'
import { usage } from '../frame/failure.ts'
import type { OptionSpec } from '../frame/verb.ts'

/** What is asked of a backend, as it stands in the options of every helper. */
export interface RequestOptions {
  backend?: string
  ttl?: string
  scope?: string[]
  param?: string[]
}

export const REQUEST_OPTIONS: readonly OptionSpec[] = [
  { flags: '--backend <name>', description: 'backend that issues the credential' },
  { flags: '--ttl <duration>', description: 'how long each lives, such as 30m' },
  {
    flags: '--scope <scope>',
    description: 'what each may do; all that the agent has where not given; may be repeated',
    repeatable: true,
  },
  {
    flags: '--param <name=value>',
    description: 'option of this kind of backend; name:=json for other than text; may be repeated',
    repeatable: true,
  },
]

/** Throws `CliError` (usage) where no backend is named. */
export function requestOf({ backend, ttl, scope, param }: RequestOptions): IssueRequest {
  if (backend === undefined || backend === '')
    throw usage('--backend is needed.', 'See which there are with `mayfly backends`.')
  const params = readAssignments(param, '--param')
  return {
    backend,
    ...(ttl === undefined ? {} : { ttl }),
    ...(scope === undefined ? {} : { scopes: scope }),
    ...(params === undefined ? {} : { params }),
  }
}

/** The same request again as flags. */
export function requestFlags({ backend, ttl, scope, param }: RequestOptions): string[] {
  return [
    ...(backend === undefined ? [] : ['--backend', backend]),
    ...(ttl === undefined ? [] : ['--ttl', ttl]),
    ...(scope ?? []).flatMap((one) => ['--scope', one]),
    ...(param ?? []).flatMap((one) => ['--param', one]),
  ]
}
