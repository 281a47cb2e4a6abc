import type { Authorizer } from './authorize.ts'
import { pages } from './paging.ts'
import { requestThrough } from './routes.ts'
import type { CallOptions } from './send.ts'
import type * as wire from './wire.ts'

type Page = wire.PageOptions

/** Operators, by id or e-mail address, and their sessions. */
export function createPeople(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    /** Who the caller is, and which operations it may call. */
    me: (options: CallOptions = {}) => request('GET /v1/admin/me', options),
    operators: {
      /** Oldest first. */
      list: (page: Page = {}) => pages(authorizer, 'GET /v1/admin/operators', {}, page),
      show: (id: string, options: CallOptions = {}) =>
        request('GET /v1/admin/operators/:id', { id, ...options }),
      /** The reply has the link of the invitation, which is shown once. */
      invite: (body: wire.InviteOperator, options: CallOptions = {}) =>
        request('POST /v1/admin/operators', { body, ...options }),
      inviteAgain: (id: string, options: CallOptions = {}) =>
        request('POST /v1/admin/operators/:id/invitation', { id, ...options }),
      update: (id: string, body: wire.ChangeOperator, options: CallOptions = {}) =>
        request('PATCH /v1/admin/operators/:id', { id, body, ...options }),
      delete: (id: string, options: CallOptions = {}) =>
        request('DELETE /v1/admin/operators/:id', { id, ...options }),
      endSessions: (id: string, options: CallOptions = {}) =>
        request('DELETE /v1/admin/operators/:id/sessions', { id, ...options }),
    },
    sessions: {
      /** Oldest first. */
      list: (filter: { readonly operator?: string | undefined } = {}, page: Page = {}) =>
        pages(authorizer, 'GET /v1/admin/sessions', filter, page),
      end: (id: string, options: CallOptions = {}) =>
        request('DELETE /v1/admin/sessions/:id', { id, ...options }),
    },
    /** A link for one login, which works for a minute. Only over `admin.sock`. */
    loginLink: (body: { readonly operator?: string | undefined } = {}, options: CallOptions = {}) =>
      request('POST /v1/admin/console/links', { body, ...options }),
  }
}
