import { UnreachableError } from './errors.ts'

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

/**
 * Sends one request. It must not follow redirects, which would hand the bearer to another server.
 * Throws `UnreachableError`, or the reason of the signal.
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
    const text = await response.text()
    return { status: response.status, header: (name) => response.headers.get(name) ?? undefined, text }
  } catch (cause) {
    request.signal?.throwIfAborted()
    throw new UnreachableError(new URL(request.url).origin, cause)
  }
}
