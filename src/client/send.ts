import { pause } from './abort.ts'
import { MayflyError, type MayflyErrorCode, UnreachableError } from './errors.ts'
import {
  readText,
  type StreamReply,
  type StreamTransport,
  type Transport,
  type TransportReply,
  type TransportRequest,
} from './transport.ts'
import type { HealthReason } from './wire.ts'

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
}

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the server's address, encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, unknown>> | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as a form. Called for each try, because an assertion is good once. */
  readonly form?: (() => Promise<Record<string, string>>) | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * `unsent`: retry only if the server cannot have carried it out. The default is `unsent` for POST and PATCH, `always` otherwise.
   * `never`: for one who is told of a failure at once, and tries again themselves.
   */
  readonly retry?: 'always' | 'unsent' | 'never' | undefined
}

export interface Reply<T> {
  readonly status: number
  readonly body: T
  header(name: string): string | undefined
}

export interface Sender {
  readonly server: string
  readonly transport: Transport
  readonly streams: StreamTransport
  readonly userAgent: string
  /** How often to retry. */
  readonly retries: number
  /** Undefined: as long as the server shows that it works. */
  readonly timeoutMs: number | undefined
  readonly signal?: AbortSignal | undefined
}

const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 10_000
/** After this time without an answer, the server must show that it works. */
const CHECK_MS = 30_000
/** More than the longest `upstream_timeout` lets a request take. */
const LONGEST_ANSWER_MS = 660_000

/** Encodes a name or id as one part of a path. Throws `MayflyError` for one that would change the path. */
export function pathPart(part: string): string {
  // The URL standard resolves "." and ".." even if they are percent-encoded.
  if (part !== '' && part !== '.' && part !== '..') return encodeURIComponent(part)
  const message = 'A name or id is empty or not valid.'
  throw new MayflyError({ code: 'invalid_request', status: 0, message })
}

/** Sends a request, with its retries. Throws `MayflyError`, `UnreachableError`, or the reason of a signal. */
export async function send<T>(sender: Sender, call: Call, authorization?: string): Promise<Reply<T>> {
  const signal = joined(sender.signal, call.signal)
  const always =
    (call.retry ?? (call.method === 'POST' || call.method === 'PATCH' ? 'unsent' : 'always')) === 'always'
  const retries = call.retry === 'never' ? 0 : sender.retries
  let lost: UnreachableError | undefined
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted()
    let wait: number | undefined
    try {
      const reply = await sendOnce(sender, call, authorization, signal)
      if (reply.status >= 200 && reply.status < 300) return { ...reply, body: parse<T>(reply) }
      throw errorOf(reply)
    } catch (error) {
      if (error instanceof UnreachableError && error.mayHaveArrived) lost = error
      wait = attempt < retries ? waitBefore(error, attempt, always) : undefined
      // That nothing listens now does not mean that an earlier try had no effect.
      if (wait === undefined) throw error instanceof UnreachableError ? (lost ?? error) : error
    }
    await pause(wait, signal)
  }
}

/** Sends a request once, and resolves with the head of its reply. Throws as `send` does. */
export async function openStream(sender: Sender, call: Call, authorization?: string): Promise<StreamReply> {
  const signal = joined(sender.signal, call.signal)
  const request = await requestOf(sender, call, authorization, signal)
  const reply = await sender.streams({ ...request, timeoutMs: sender.timeoutMs ?? CHECK_MS })
  if (reply.status >= 200 && reply.status < 300) return reply
  throw errorOf({ ...reply, text: await readText(reply) })
}

async function sendOnce(
  sender: Sender,
  call: Call,
  authorization: string | undefined,
  signal: AbortSignal | undefined,
): Promise<TransportReply> {
  const request = await requestOf(sender, call, authorization, signal)
  const { timeoutMs } = sender
  return timeoutMs === undefined ? waitFor(sender, request) : sender.transport({ ...request, timeoutMs })
}

async function requestOf(
  sender: Sender,
  call: Call,
  authorization: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Omit<TransportRequest, 'timeoutMs'>> {
  const form = call.form === undefined ? undefined : new URLSearchParams(await call.form()).toString()
  const json = call.body === undefined ? undefined : JSON.stringify(call.body)
  const contentType = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
  const body = form ?? json
  return {
    method: call.method,
    url: sender.server + call.path + queryText(call.query),
    headers: {
      accept: 'application/json',
      'user-agent': sender.userAgent,
      ...(authorization === undefined ? {} : { authorization }),
      ...(body === undefined ? {} : { 'content-type': contentType }),
      ...call.headers,
    },
    body,
    signal,
  }
}

/** Waits for the answer while the server answers others: only the server knows how long its upstream may take. */
async function waitFor(
  { server, transport }: Sender,
  request: Omit<TransportRequest, 'timeoutMs'>,
): Promise<TransportReply> {
  const silent = new AbortController()
  const check = setInterval(() => {
    transport({ method: 'GET', url: `${server}/health`, headers: {}, timeoutMs: CHECK_MS }).catch((error) =>
      silent.abort(new UnreachableError(server, error, 'timeout')),
    )
  }, CHECK_MS)
  try {
    const signal = joined(request.signal, silent.signal)
    return await transport({ ...request, signal, timeoutMs: LONGEST_ANSWER_MS })
  } finally {
    clearInterval(check)
  }
}

function queryText(query: Call['query']): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) for (const one of [value].flat()) search.append(name, String(one))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

/** Milliseconds until the next try; undefined if there should be none. */
function waitBefore(error: unknown, attempt: number, always: boolean): number | undefined {
  const backoff = Math.random() * FIRST_WAIT_MS * 2 ** (attempt + 1)
  if (error instanceof UnreachableError) {
    if (error.reason === 'refused') return backoff
    // A timeout has taken long enough.
    return always && error.mayHaveArrived && error.reason !== 'timeout' ? backoff : undefined
  }
  if (!(error instanceof MayflyError)) return undefined
  // A 429 left nothing done. A 503 may come from a proxy. A 409 with Retry-After is the same request, under way.
  const passing = error.status === 503 || (error.status === 409 && error.retryAfterSeconds !== undefined)
  if (error.status !== 429 && !(passing && always)) return undefined
  const asked = (error.retryAfterSeconds ?? 0) * 1_000
  return asked > LONGEST_WAIT_MS ? undefined : Math.max(asked, backoff)
}

function joined(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one === undefined || other === undefined ? (one ?? other) : AbortSignal.any([one, other])
}

function parse<T>(reply: TransportReply): T {
  if (reply.text === '') return undefined as T
  try {
    return JSON.parse(reply.text) as T
  } catch {
    throw unexpected(reply)
  }
}

function unexpected(reply: TransportReply): MayflyError {
  return new MayflyError({
    code: 'unexpected_reply',
    status: reply.status,
    message: `The answer (status ${reply.status}) is not from a Mayfly server.`,
    requestId: reply.header('x-request-id'),
    retryAfterSeconds: retryAfterOf(reply),
  })
}

interface ErrorText {
  error?: { code?: unknown; message?: unknown; reason?: unknown } | string
  error_description?: unknown
}

/** Reads an error of our own shape or of OAuth's (RFC 6749 §5.2). */
function errorOf(reply: TransportReply): MayflyError {
  let body: ErrorText | null
  try {
    body = JSON.parse(reply.text) as ErrorText | null
  } catch {
    return unexpected(reply)
  }
  const { error, error_description } = body ?? {}
  const code = typeof error === 'string' ? error : error?.code
  const message = typeof error === 'string' ? (error_description ?? error) : error?.message
  if (typeof code !== 'string' || typeof message !== 'string') return unexpected(reply)
  const reason = typeof error === 'object' && typeof error.reason === 'string' ? error.reason : undefined
  return new MayflyError({
    code: code as MayflyErrorCode,
    status: reply.status,
    message,
    requestId: reply.header('x-request-id'),
    retryAfterSeconds: retryAfterOf(reply),
    scope: /scope="([^"]*)"/.exec(reply.header('www-authenticate') ?? '')?.[1],
    reason: reason as HealthReason | undefined,
  })
}

function retryAfterOf(reply: TransportReply): number | undefined {
  const text = reply.header('retry-after')
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
