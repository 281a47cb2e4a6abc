import { BackendError, type Host } from '../kind.ts'
import type { Config } from './config.ts'

export interface Reply {
  readonly status: number
  /** `undefined` where there is none, or it is not JSON. */
  readonly body: unknown
}

export interface Api {
  /** Throws `BackendError` for every status but 2xx, 400 and 404. `password` in place of the configured one. */
  call(method: string, path: string, signal: AbortSignal, options?: CallOptions): Promise<Reply>
}

interface CallOptions {
  readonly body?: unknown
  readonly password?: string
}

/** The HTTP API of the management plugin: https://www.rabbitmq.com/docs/http-api-reference */
export function createApi(settings: Config, host: Host): Api {
  const base = `${settings.url.replace(/\/+$/, '')}/api`
  const how = { local: settings.local, ...(settings.ca === undefined ? {} : { ca: settings.ca }) }
  return {
    async call(method, path, signal, { body, password = settings.password } = {}) {
      const login = Buffer.from(`${settings.username}:${password}`).toString('base64')
      const headers = { authorization: `Basic ${login}`, 'content-type': 'application/json' }
      const content = body === undefined ? {} : { body: JSON.stringify(body) }
      const response = await host.fetch(`${base}${path}`, { method, headers, signal, ...content }, how)
      return checked(response.status, await response.text())
    },
  }
}

function checked(status: number, text: string): Reply {
  const body = parsed(text)
  const options = { detail: `${status}: ${text.slice(0, 200)}` }
  // One status for both: the login failed, or the user may not do this.
  if (status === 401 && reasonOf(body) === 'Not administrator user') {
    throw new BackendError('denied', 'The user that Mayfly logs in as lacks the tag administrator.', options)
  }
  if (status === 401 || status === 403) {
    throw new BackendError('denied', 'RabbitMQ refused the login.', options)
  }
  if ((status >= 200 && status < 300) || status === 400 || status === 404) return { status, body }
  if (status === 405) throw new BackendError('misconfigured', NOT_THE_API, options)
  throw new BackendError('unavailable', 'RabbitMQ cannot take the request at this time.', options)
}

const NOT_THE_API = 'The address is not that of the HTTP API of RabbitMQ; see "url".'

/** For a reply that this request cannot have from RabbitMQ. */
export function unexpected({ status }: Reply): BackendError {
  if (status === 404) return new BackendError('misconfigured', NOT_THE_API)
  return new BackendError('unavailable', 'RabbitMQ sent a reply that Mayfly does not understand.', {
    detail: `status ${status}`,
  })
}

/** Its own 404, not that of a proxy or of another server. */
export function isNotFound({ status, body }: Reply): boolean {
  return status === 404 && fieldOf(body, 'error') === 'Object Not Found'
}

export function reasonOf(body: unknown): unknown {
  return fieldOf(body, 'reason')
}

export function fieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null
    ? Object.entries(body).find(([key]) => key === name)?.[1]
    : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
