import type { IssueRequest } from '../../client/wire.ts'
import { readAssignments } from '../frame/assignments.ts'
import { usage } from '../frame/failure.ts'
import type { OptionSpec } from '../frame/verb.ts'

/** The options with which every helper requests a credential. */
export interface RequestOptions {
  backend?: string | undefined
  ttl?: string | undefined
  scope?: string[] | undefined
  param?: string[] | undefined
}

export const REQUEST_OPTIONS: readonly OptionSpec[] = [
  { flags: '--backend <name>', description: 'backend that issues the credential', values: 'backends' },
  { flags: '--ttl <duration>', description: 'lifetime of each credential, such as 30m' },
  {
    flags: '--scope <scope>',
    description: 'request this scope; by default all scopes of the agent; may be repeated',
    repeatable: true,
  },
  {
    flags: '--param <name=value>',
    description: 'parameter of the kind of backend; name:=json for values other than text; may be repeated',
    repeatable: true,
  },
]

/** Throws `CliError` (usage) without a backend. */
export function requestOf({ backend, ttl, scope, param }: RequestOptions): IssueRequest {
  if (backend === undefined || backend === '')
    throw usage('--backend is required.', 'List the backends with `mayfly backends`.')
  const params = readAssignments(param, '--param')
  return {
    backend,
    ...(ttl === undefined ? {} : { ttl }),
    ...(scope === undefined ? {} : { scopes: scope }),
    ...(params === undefined ? {} : { params }),
  }
}

/** The same options as flags. */
export function requestFlags({ backend, ttl, scope, param }: RequestOptions): string[] {
  return [
    ...(backend === undefined ? [] : ['--backend', backend]),
    ...(ttl === undefined ? [] : ['--ttl', ttl]),
    ...(scope ?? []).flatMap((one) => ['--scope', one]),
    ...(param ?? []).flatMap((one) => ['--param', one]),
  ]
}
