import { type BackendError, denied, misconfigured } from '../../domain/backend-error.ts'
import { busy, callJson, detailOf, type JsonReply, notUnderstood } from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'

const NAME = 'RabbitMQ'

export interface Api {
  /**
   * Throws `BackendError` for every status but 2xx, 400 and 404, and 405 for a path that releases may lack. `password` in place
   * of the configured one.
   */
  call(
    method: 'GET' | 'PUT' | 'DELETE',
    path: string,
    signal: AbortSignal,
    options?: { readonly json?: unknown; readonly password?: string; readonly mayLack?: boolean },
  ): Promise<JsonReply>
}

/** The HTTP API of the management plugin: https://www.rabbitmq.com/docs/http-api-reference */
export function createApi(settings: Config, host: Host): Api {
  const base = `${settings.url.replace(/\/+$/, '')}/api`
  const how = { local: settings.local, ...(settings.ca === undefined ? {} : { ca: settings.ca }) }
  return {
    async call(method, path, signal, { json, password = settings.password, mayLack = false } = {}) {
      const login = Buffer.from(`${settings.username}:${password}`).toString('base64')
      const headers = { authorization: `Basic ${login}` }
      const reply = await callJson(host, NAME, `${base}${path}`, { method, headers, json, signal }, how)
      return reply.status === 405 && mayLack ? reply : checked(reply)
    },
  }
}

function checked(reply: JsonReply): JsonReply {
  const { status, body } = reply
  const options = { detail: detailOf(reply) }
  // One status for both: the login failed, or the user may not do this.
  if (status === 401 && body?.['reason'] === 'Not administrator user') {
    throw denied('The user that Mayfly logs in as lacks the tag administrator.', options)
  }
  if (status === 401 || status === 403) {
    throw denied('RabbitMQ refused the login.', { ...options, login: status === 401 })
  }
  if ((status >= 200 && status < 300) || status === 400 || status === 404) return reply
  if (status === 405) throw misconfigured(NOT_THE_API, options)
  throw busy(NAME, reply)
}

const NOT_THE_API = 'The address is not that of the HTTP API of RabbitMQ; see "url".'

/** For a reply that this request cannot have from RabbitMQ. */
export function unexpected({ status }: JsonReply): BackendError {
  return status === 404 ? misconfigured(NOT_THE_API) : notUnderstood(NAME)
}

/** Its own 404, not that of a proxy or of another server. */
export function isNotFound({ status, body }: JsonReply): boolean {
  return status === 404 && body?.['error'] === 'Object Not Found'
}
