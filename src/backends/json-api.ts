import { type BackendError, unavailable } from '../domain/backend-error.ts'
import { isObject, type JsonObject, parseJson } from '../domain/formats/json.ts'
import type { FetchOptions } from '../egress/fetch.ts'
import type { Host } from './kind.ts'

/** Shared by the kinds whose upstream is an HTTP API that answers in JSON. */

export interface JsonCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  /** The body, in one of the two forms. */
  readonly json?: unknown
  readonly form?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

export interface JsonReply {
  readonly status: number
  readonly headers: Headers
  /** `undefined`: the body is not a JSON object. */
  readonly body: JsonObject | undefined
  /** `undefined`: the body is not a JSON array. */
  readonly items: readonly unknown[] | undefined
}

/**
 * Sends one request. Returns any answer of the upstream but those that say that nobody is served (RFC 9110 §15.6 and §15.5.9,
 * RFC 6585 §4). Throws `BackendError` for these, and where no answer comes. `upstream` begins the messages: "GitHub".
 */
export async function callJson(
  host: Pick<Host, 'fetch'>,
  upstream: string,
  url: string,
  { method = 'GET', headers = {}, json, form, signal }: JsonCall,
  options: FetchOptions = {},
): Promise<JsonReply> {
  const type = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
  const content = form === undefined ? JSON.stringify(json) : new URLSearchParams(form).toString()
  const sent = content === undefined ? {} : { 'content-type': type }
  const init = {
    method,
    headers: { accept: 'application/json', ...sent, ...headers },
    signal,
    ...(content === undefined ? {} : { body: content }),
  }
  const response = await host.fetch(url, init, options)
  const value = parseJson(await response.text())
  const body = isObject(value) ? value : undefined
  const items = Array.isArray(value) ? value : undefined
  const reply: JsonReply = { status: response.status, headers: response.headers, body, items }
  if (reply.status >= 500 || reply.status === 429 || reply.status === 408) throw busy(upstream, reply)
  return reply
}

/** A text that the reply must contain. Throws `unavailable`, because the reply does not say whether something was created. */
export function textIn(upstream: string, body: JsonObject | undefined, field: string): string {
  const value = body?.[field]
  if (typeof value !== 'string' || value === '') throw notUnderstood(upstream)
  return value
}

export function notUnderstood(upstream: string): BackendError {
  return unavailable(`${upstream} sent a reply that Mayfly does not understand.`, {
    reason: 'bad_answer',
  })
}

/** The upstream serves nobody at this time, or not this client. */
export function busy(upstream: string, reply: JsonReply): BackendError {
  return unavailable(`${upstream} cannot take the request at this time.`, {
    detail: detailOf(reply),
    ...(reply.status === 429 && { reason: 'rate_limited' as const }),
  })
}

/** For `BackendError.detail`: the status, and the usual error fields. Never called for a reply that succeeded. */
export function detailOf({ status, body }: JsonReply): string {
  if (status < 400) return `status ${status}`
  const nested = isObject(body?.['error']) ? body['error'] : {}
  const words = [body?.['error'], body?.['message'], body?.['error_description'], nested['message']]
  const said = words.filter((word) => typeof word === 'string')
  return [`status ${status}`, ...said].join(': ').slice(0, 500)
}
