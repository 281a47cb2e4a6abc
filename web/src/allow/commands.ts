import type { Answer } from '../../../src/client/routes.ts'
import { request } from '../api/request.ts'

/** The login of a command that waits: by the code that a person types, or by the request with which it opened this browser. */
export type Named = { readonly user_code: string } | { readonly request: string }
export type Command = Answer<'POST /v1/console/commands/look'>

/** A person who has mistyped too often is told at once how long to wait. */
export const look = (body: Named): Promise<Command> =>
  request('POST /v1/console/commands/look', { body, retry: 'never' })
export const allow = (body: Named) => request('POST /v1/console/commands/allow', { body })
export const deny = (body: Named) => request('POST /v1/console/commands/deny', { body })
