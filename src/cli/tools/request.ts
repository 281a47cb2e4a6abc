import type { IssueRequest } from '../../client/wire.ts'
import { readAssignments } from '../frame/assignments.ts'
import { usage } from '../frame/failure.ts'
import { many, PARAM, text, type ValuesOf } from '../frame/options.ts'

/** The options with which every helper requests a credential. */
export const REQUEST_OPTIONS = {
  backend: text('<name>', 'backend that issues the credential', { values: 'backends' }),
  ttl: text('<duration>', 'lifetime of each credential, such as 30m'),
  scope: many('<scope>', 'request this scope; by default all scopes of the agent; may be repeated'),
  ...PARAM,
}

export type RequestOptions = ValuesOf<typeof REQUEST_OPTIONS>

/** Throws `CliError` (usage) without a backend. */
export function requestOf({ backend, ttl, scope, param }: RequestOptions): IssueRequest {
  if (backend === undefined || backend === '')
    throw usage('--backend is required.', 'List the backends with `mayfly backends`.')
  return { backend, ttl, scopes: scope, params: readAssignments(param, '--param') }
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
