import type { Authorizer } from './authorize.ts'
import { pages } from './paging.ts'
import { requestThrough } from './routes.ts'
import { followRun, type RunEventOptions } from './run-events.ts'
import type { CallOptions } from './send.ts'
import type {
  AnyRunFilter,
  EndOfRun,
  PageOptions,
  RequestBatch,
  RequestFilter,
  RunFilter,
  StartRun,
} from './wire.ts'

/** Runs of the agent: what is issued with one ends with it. Each throws `not_found` for a run of another agent. */
export function runCalls(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    /** Asks again when the answer is lost: a run that nobody knows of misses its heartbeats and ends. */
    start: (body: StartRun = {}, options: CallOptions = {}) =>
      request('POST /v1/runs', { body, retry: 'always', ...options }),
    /** Once every `heartbeat`. Sent once: the caller knows when the next is due. Throws `gone` for a run that has ended. */
    beat: (id: string, options: CallOptions = {}) =>
      request('POST /v1/runs/:id/heartbeat', { id, retry: 'never', ...options }),
    /** Ends the run with all its credentials. Repeating it changes nothing. */
    end: (id: string, options: CallOptions & EndOfRun = {}) => {
      const { reason, ...rest } = options
      return request('DELETE /v1/runs/:id', { id, query: { reason }, ...rest })
    },
    show: (id: string, options: CallOptions = {}) => request('GET /v1/runs/:id', { id, ...options }),
    /** Newest first. */
    list: (filter: RunFilter = {}, page: PageOptions = {}) => pages(authorizer, 'GET /v1/runs', filter, page),
    /** Which of its credentials live, over one connection: see `followRun`. */
    events: (id: string, options: RunEventOptions = {}) => followRun(authorizer, id, options),
    /** What a proxy did for it. Asks again when the answer is lost: a batch counts once. */
    record: (id: string, body: RequestBatch, options: CallOptions = {}) =>
      request('POST /v1/runs/:id/requests', { id, body, retry: 'always', ...options }),
    /** What a proxy has told of its requests, newest first. */
    requests: (id: string, filter: RequestFilter = {}, page: PageOptions = {}) =>
      pages(authorizer, 'GET /v1/runs/:id/requests', filter, page, id),
  }
}

/** Runs of all agents, for administrators. */
export function anyRunCalls(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    end: (id: string, options: CallOptions = {}) => request('DELETE /v1/admin/runs/:id', { id, ...options }),
    show: (id: string, options: CallOptions = {}) => request('GET /v1/admin/runs/:id', { id, ...options }),
    /** Newest first. */
    list: (filter: AnyRunFilter = {}, page: PageOptions = {}) =>
      pages(authorizer, 'GET /v1/admin/runs', filter, page),
    /** What a proxy has told of its requests, newest first. */
    requests: (id: string, filter: RequestFilter = {}, page: PageOptions = {}) =>
      pages(authorizer, 'GET /v1/admin/runs/:id/requests', filter, page, id),
  }
}
