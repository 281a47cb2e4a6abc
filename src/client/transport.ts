import { MayflyError, UnreachableError } from './errors.ts'

export interface TransportRequest {
  readonly method: string
  /** Absolute and encoded. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs: number
}

export interface TransportReply {
  readonly status: number
  header(name: string): string | undefined
  readonly text: string
}

/** No reply of a server is larger: a page of a listing has at most 1,000 rows. */
export const MAX_REPLY_BYTES = 32 * 1024 * 1024

/** Ends a reply that would fill the memory; the client does not ask for it again. */
export function replyTooLarge(status: number, maxBytes = MAX_REPLY_BYTES): MayflyError {
  const MiB = 1024 * 1024
  const most = maxBytes < MiB ? `${maxBytes / 1024} KiB` : `${maxBytes / MiB} MiB`
  return new MayflyError({ code: 'unexpected_reply', status, message: `The answer is larger than ${most}.` })
}

/**
 * Sends one request. It must not follow redirects, which would hand the bearer to another server.
 * Throws `UnreachableError`, `MayflyError` for a reply over `MAX_REPLY_BYTES`, or the reason of the signal.
 */
export type Transport = (request: TransportRequest) => Promise<TransportReply>

export interface StreamReply extends Pick<TransportReply, 'status' | 'header'> {
  readonly body: ReadableStream<Uint8Array>
}

/**
 * As `Transport`, for a reply of any length: resolves with its head, which `timeoutMs` is for. The signal ends the body, too.
 */
export type StreamTransport = (request: TransportRequest) => Promise<StreamReply>

/** Uses the `fetch` of the platform. */
export const fetchStream: StreamTransport = async (request) => {
  const ending = new AbortController()
  const stop = () => ending.abort(request.signal?.reason)
  if (request.signal?.aborted === true) stop()
  request.signal?.addEventListener('abort', stop, { once: true })
  const timer = setTimeout(() => ending.abort(new DOMException('timeout', 'TimeoutError')), request.timeoutMs)
  try {
    const { status, headers, body } = await fetch(request.url, initOf(request, ending.signal))
    const empty = () => new ReadableStream<Uint8Array>({ start: (controller) => controller.close() })
    return { status, header: (name) => headers.get(name) ?? undefined, body: body ?? empty() }
  } catch (cause) {
    request.signal?.throwIfAborted()
    throw new UnreachableError(new URL(request.url).origin, cause)
  } finally {
    clearTimeout(timer)
  }
}

function initOf({ method, headers, body }: TransportRequest, signal: AbortSignal): RequestInit {
  return {
    method,
    headers: { ...headers },
    redirect: 'manual',
    signal,
    ...(body === undefined ? {} : { body }),
  }
}

/** Uses the `fetch` of the platform. */
export const fetchTransport: Transport = async (request) => {
  const timeout = AbortSignal.timeout(request.timeoutMs)
  try {
    const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout])
    const response = await fetch(request.url, initOf(request, signal))
    const text = await readText(response)
    return { status: response.status, header: (name) => response.headers.get(name) ?? undefined, text }
  } catch (cause) {
    if (cause instanceof MayflyError) throw cause
    request.signal?.throwIfAborted()
    throw new UnreachableError(new URL(request.url).origin, cause)
  }
}

/** The text of a reply that is not long. Throws `MayflyError`. */
export async function readText({
  body,
  status,
}: {
  readonly body: ReadableStream<Uint8Array> | null
  readonly status: number
}): Promise<string> {
  const reader = body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    size += read.value.length
    if (size > MAX_REPLY_BYTES) {
      await reader?.cancel()
      throw replyTooLarge(status)
    }
    text += decoder.decode(read.value, { stream: true })
  }
  return text + decoder.decode()
}
