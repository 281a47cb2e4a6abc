import { MayflyError, type MayflyErrorCode, UnreachableError } from './errors.ts'
import type { Transport, TransportReply } from './transport.ts'

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
}

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** From `path`: encoded, below the server's address. */
  readonly path: string
  readonly query?: Readonly<Record<string, unknown>> | undefined
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as a form; made anew for each try, because an assertion is good once. */
  readonly form?: (() => Promise<Record<string, string>>) | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** `unsent`: tried again only while nothing can have been carried out. Default by method: POST `unsent`, others `always`. */
  readonly retry?: 'always' | 'unsent' | undefined
}

export interface Reply<T> {
  readonly status: number
  readonly body: T
  header(name: string): string | undefined
}

export interface Sender {
  readonly server: string
  readonly transport: Transport
  readonly userAgent: string
  /** How often it is tried again. */
  readonly retries: number
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

const FIRST_WAIT_MS = 200
const LONGEST_WAIT_MS = 10_000

/** Encodes every part that is filled in. Throws `MayflyError` for one that would change the path. */
export function path(texts: TemplateStringsArray, ...parts: readonly string[]): string {
  return texts.reduce((whole, text, index) => {
    const part = parts[index - 1] ?? ''
    // The URL standard resolves "." and ".." even where they are percent-encoded.
    if (part === '' || part === '.' || part === '..')
      throw new MayflyError({
        code: 'invalid_request',
        status: 0,
        message: 'A name or id is empty or not valid.',
      })
    return whole + encodeURIComponent(part) + text
  })
}

/** One request with its repetitions. Throws `MayflyError`, `UnreachableError`, or the reason of a signal. */
export async function send<T>(sender: Sender, call: Call, authorization?: string): Promise<Reply<T>> {
  const signal = joined(sender.signal, call.signal)
  const always = (call.retry ?? (call.method === 'POST' ? 'unsent' : 'always')) === 'always'
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted()
    let wait: number | undefined
    try {
      const reply = await sendOnce(sender, call, authorization, signal)
      if (reply.status < 300) return { ...reply, body: parse<T>(reply) }
      throw errorOf(reply)
    } catch (error) {
      wait = attempt < sender.retries ? waitBefore(error, attempt, always) : undefined
      if (wait === undefined) throw error
    }
    await pause(wait, signal)
  }
}

async function sendOnce(
  sender: Sender,
  call: Call,
  authorization: string | undefined,
  signal: AbortSignal | undefined,
): Promise<TransportReply> {
  const form = call.form === undefined ? undefined : new URLSearchParams(await call.form()).toString()
  const json = call.body === undefined ? undefined : JSON.stringify(call.body)
  const contentType = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
  const body = form ?? json
  return sender.transport({
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
    timeoutMs: sender.timeoutMs,
  })
}

function queryText(query: Call['query']): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) for (const one of [value].flat()) search.append(name, String(one))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

/** Milliseconds until it makes sense to try again; undefined when it does not. */
function waitBefore(error: unknown, attempt: number, always: boolean): number | undefined {
  const backoff = Math.random() * FIRST_WAIT_MS * 2 ** (attempt + 1)
  if (error instanceof UnreachableError) {
    if (error.reason === 'refused') return backoff
    // After a timeout enough time has been spent.
    return always && error.mayHaveArrived && error.reason !== 'timeout' ? backoff : undefined
  }
  if (!(error instanceof MayflyError)) return undefined
  // 429: it was refused before anything was done. 503 may come from something in between; a 409 that says when
  // to come back is the same request under way.
  const passing = error.status === 503 || (error.status === 409 && error.retryAfterSeconds !== undefined)
  if (error.status !== 429 && !(passing && always)) return undefined
  const asked = (error.retryAfterSeconds ?? 0) * 1_000
  return asked > LONGEST_WAIT_MS ? undefined : Math.max(asked, backoff)
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
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
    message: `What answered (status ${reply.status}) does not look like a Mayfly server.`,
    requestId: reply.header('x-request-id'),
    retryAfterSeconds: retryAfterOf(reply),
  })
}

interface ErrorText {
  error?: { code?: unknown; message?: unknown } | string
  error_description?: unknown
}

/** Either shape: ours, or that of OAuth (RFC 6749 §5.2). */
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
  return new MayflyError({
    code: code as MayflyErrorCode,
    status: reply.status,
    message,
    requestId: reply.header('x-request-id'),
    retryAfterSeconds: retryAfterOf(reply),
    scope: /scope="([^"]*)"/.exec(reply.header('www-authenticate') ?? '')?.[1],
  })
}

function retryAfterOf(reply: TransportReply): number | undefined {
  const text = reply.header('retry-after')
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
