import type { Authorizer } from './authorize.ts'
import { type FollowOptions, followEvents } from './events.ts'
import { pages } from './paging.ts'
import { createPeople } from './people.ts'
import { type Route, requestThrough } from './routes.ts'
import { anyRunCalls } from './runs.ts'
import type { CallOptions } from './send.ts'
import type * as wire from './wire.ts'

/** `check: false` stores a backend without trying its upstream. */
export interface CheckOptions extends CallOptions {
  readonly check?: boolean | undefined
}
/** `force`: it is the same upstream under another address, even if credentials are alive there. */
export interface ChangeOptions extends CheckOptions {
  readonly force?: boolean | undefined
}
/** `force`: revokes the credentials that are alive first. */
export interface ForceOptions extends CallOptions {
  readonly force?: boolean | undefined
}

export interface EventOptions extends FollowOptions {
  readonly filter?: wire.EventFilter | undefined
}

type Page = wire.PageOptions

/** `/v1/admin`: needs the admin scope of each route, or the local host. */
export function createAdmin(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  const list = <R extends Route>(route: R, filter: object, page: Page) =>
    pages(authorizer, route, filter, page)
  return {
    ...createPeople(authorizer),
    agents: {
      /** Oldest first. */
      list: (page: Page = {}) => list('GET /v1/admin/agents', {}, page),
      create: (body: wire.CreateAgent, options: CallOptions = {}) =>
        request('POST /v1/admin/agents', { body, ...options }),
      show: (name: string, options: CallOptions = {}) =>
        request('GET /v1/admin/agents/:name', { id: name, ...options }),
      update: (name: string, body: wire.ChangeAgent, options: CallOptions = {}) =>
        request('PATCH /v1/admin/agents/:name', { id: name, body, ...options }),
      /** A new token and client secret. The old ones stay valid for `grace` (a duration), by default not at all. */
      rotate: (name: string, body: { grace?: string | undefined } = {}, options: CallOptions = {}) =>
        request('POST /v1/admin/agents/:name/rotate', { id: name, body, ...options }),
      delete: (name: string, options: CallOptions = {}) =>
        request('DELETE /v1/admin/agents/:name', { id: name, ...options }),
    },
    ...createServer(authorizer),
    backends: createBackends(authorizer),
    kinds: (page: Page = {}) => list('GET /v1/admin/kinds', {}, page),
    tokens: {
      /** Newest first. */
      list: (filter: wire.CredentialFilter = {}, page: Page = {}) =>
        list('GET /v1/admin/tokens', filter, page),
      show: (id: string, options: CallOptions = {}) =>
        request('GET /v1/admin/tokens/:id', { id, ...options }),
      revoke: (id: string, options: CallOptions = {}) =>
        request('DELETE /v1/admin/tokens/:id', { id, ...options }),
      /** All of an agent, of a backend, or of an agent at a backend. Repeat it until `remaining` is 0. */
      revokeAll: (body: wire.RevokeAll, options: CallOptions = {}) =>
        request('POST /v1/admin/tokens/revoke', { body, ...options }),
    },
    runs: anyRunCalls(authorizer),
    /** Newest first. */
    audit: (filter: wire.AuditFilter = {}, page: Page = {}) => list('GET /v1/admin/audit', filter, page),
    /** How many entries the audit has, by time, backend and action. */
    activity: (query: wire.ActivityFilter = {}, options: CallOptions = {}) =>
      request('GET /v1/admin/activity', { query, ...options }),
    ...createLive(authorizer),
    pending: {
      /** Oldest first; with a status, those that were decided so. */
      list: (filter: wire.PendingFilter = {}, page: Page = {}) => list('GET /v1/admin/pending', filter, page),
      show: (id: string, options: CallOptions = {}) =>
        request('GET /v1/admin/pending/:id', { id, ...options }),
      approve: (id: string, body: wire.Approval = {}, options: CallOptions = {}) =>
        request('POST /v1/admin/pending/:id/approve', { id, body, ...options }),
      reject: (id: string, body: wire.Rejection = {}, options: CallOptions = {}) =>
        request('POST /v1/admin/pending/:id/reject', { id, body, ...options }),
    },
    policies: (page: Page = {}) => list('GET /v1/admin/policies', {}, page),
    /** What a policy would decide about an enrollment with this name and these scopes, and why. */
    explainPolicy: (
      asked: { name: string; scopes?: readonly string[] | undefined },
      options: CallOptions = {},
    ) => {
      const query = { name: asked.name, scope: asked.scopes }
      return request('GET /v1/admin/policies/explain', { query, ...options })
    },
  }
}

function createServer(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    notify: {
      /** Sends a test message to this receiver, once; the answer says whether it took it. */
      test: (name: string, options: CallOptions = {}) =>
        request('POST /v1/admin/notify/:name/test', { id: name, ...options }),
    },
    plugins: {
      list: (page: Page = {}) => pages(authorizer, 'GET /v1/admin/plugins', {}, page),
      /** Pins a file that lies in the directory of plugins under its hash. Only over `admin.sock`. */
      add: (body: wire.AddPlugin, options: CallOptions = {}) =>
        request('POST /v1/admin/plugins', { body, ...options }),
      /** Only over `admin.sock`. */
      remove: (name: string, options: CallOptions = {}) =>
        request('DELETE /v1/admin/plugins/:name', { id: name, ...options }),
      reloadAll: (options: CallOptions = {}) => request('POST /v1/admin/plugins/reload', options),
      reload: (name: string, options: CallOptions = {}) =>
        request('POST /v1/admin/plugins/:name/reload', { id: name, ...options }),
    },
    /** The settings in force on the node that answers; secrets read [redacted]. */
    settings: (options: CallOptions = {}) => request('GET /v1/admin/settings', options),
    nodes: (options: CallOptions = {}) => request('GET /v1/admin/nodes', options),
    /** Only over `admin.sock`: the server reads its configuration again. */
    reload: (options: CallOptions = {}) => request('POST /v1/admin/reload', options),
    keys: {
      /** The public signing keys of all agents. */
      list: (page: Page = {}) => pages(authorizer, 'GET /v1/admin/keys', {}, page),
      /** The keys that sign access tokens or still verify them, the one that signs first. */
      issuer: (options: CallOptions = {}) => request('GET /v1/admin/keys/issuer', options),
      /** Signs tokens with a new key. The old one verifies for another `grace` (a duration). */
      rotate: (body: { grace?: string | undefined } = {}, options: CallOptions = {}) =>
        request('POST /v1/admin/keys/rotate', { body, ...options }),
    },
    /** What is alive, what waits and what cannot be ended. */
    overview: (options: CallOptions = {}) => request('GET /v1/admin/overview', options),
  }
}

function createLive(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    /** What happens from now on, or after `cursor`, over as many connections as it takes. */
    events: ({ filter, ...options }: EventOptions = {}) =>
      followEvents(async (last, signal) => {
        const headers = { accept: 'text/event-stream', ...(last && { 'last-event-id': last }) }
        const call = {
          method: 'GET',
          path: '/v1/admin/events',
          query: { ...filter },
          headers,
          signal,
        } as const
        return (await authorizer.stream(call)).body
      }, options),
    /** The audit as a file of any size, newest first. */
    exportAudit: async (asked: wire.AuditExport, options: CallOptions = {}) => {
      const { url } = await request('POST /v1/admin/audit/export', { body: asked, ...options })
      // The client never follows an address that it was sent.
      const ticket = new URL(url, 'http://localhost').searchParams.get('ticket')
      const call = { method: 'GET', path: '/v1/admin/audit/export', query: { ticket }, ...options } as const
      return (await authorizer.stream(call)).body
    },
  }
}

function createBackends(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    list: (page: Page = {}) => pages(authorizer, 'GET /v1/admin/backends', {}, page),
    create: (body: wire.CreateBackend, { signal, ...query }: CheckOptions = {}) =>
      request('POST /v1/admin/backends', { body, query, signal }),
    show: (name: string, options: CallOptions = {}) =>
      request('GET /v1/admin/backends/:name', { id: name, ...options }),
    update: (name: string, body: wire.ChangeBackend, { signal, ...query }: ChangeOptions = {}) =>
      request('PUT /v1/admin/backends/:name', { id: name, body, query, signal }),
    delete: (name: string, { signal, ...query }: ForceOptions = {}) =>
      request('DELETE /v1/admin/backends/:name', { id: name, query, signal }),
    /** Logs in to the upstream. `health` says whether it works. */
    check: (name: string, options: CallOptions = {}) =>
      request('POST /v1/admin/backends/:name/check', { id: name, ...options }),
    /** Issues a credential that nobody receives, and ends it. `steps` says what worked. */
    try: (name: string, body: wire.TryBackend = {}, options: CallOptions = {}) =>
      request('POST /v1/admin/backends/:name/try', { id: name, body, ...options }),
    /** Replaces the secret that the server logs in to the upstream with. */
    rotateRoot: (name: string, options: CallOptions = {}) =>
      request('POST /v1/admin/backends/:name/rotate-root', { id: name, ...options }),
    /**
     * Accounts at the upstream that carry Mayfly's names and that no credential owns; `revoke` ends them. Go on with the
     * `next_cursor` of the answer until it is null.
     */
    reconcile: (name: string, body: wire.Reconcile = {}, options: CallOptions = {}) =>
      request('POST /v1/admin/backends/:name/reconcile', { id: name, body, ...options }),
  }
}
