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
export function replyTooLarge(status: number): MayflyError {
  return new MayflyError({
    code: 'unexpected_reply',
    status,
    message: `The answer is larger than ${MAX_REPLY_BYTES / 1024 / 1024} MiB.`,
  })
}

/**
 * Sends one request. It must not follow redirects, which would hand the bearer to another server.
 * Throws `UnreachableError`, `MayflyError` for a reply over `MAX_REPLY_BYTES`, or the reason of the signal.
 */
export type Transport = (request: TransportRequest) => Promise<TransportReply>

/** Uses the `fetch` of the platform. */
export const fetchTransport: Transport = async (request) => {
  const timeout = AbortSignal.timeout(request.timeoutMs)
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: { ...request.headers },
      redirect: 'manual',
      signal: request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]),
      ...(request.body === undefined ? {} : { body: request.body }),
    })
    const text = await readText(response)
    return { status: response.status, header: (name) => response.headers.get(name) ?? undefined, text }
  } catch (cause) {
    if (cause instanceof MayflyError) throw cause
    request.signal?.throwIfAborted()
    throw new UnreachableError(new URL(request.url).origin, cause)
  }
}

async function readText({ body, status }: Response): Promise<string> {
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
