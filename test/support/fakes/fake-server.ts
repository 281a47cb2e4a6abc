import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface FakeRequest {
  readonly method: string
  readonly url: URL
  /** `METHOD /path`, without the query. */
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface FakeReply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

export interface FakeServer extends AsyncDisposable {
  readonly url: string
  /** Requests in order. */
  readonly seen: readonly FakeRequest[]
  /** Answers the next requests of this method and path instead of the fake. */
  interrupt(line: string, ...replies: Respond[]): void
}

type Respond = (request: FakeRequest) => FakeReply | Promise<FakeReply>

async function answerOrFault(respond: Respond, request: FakeRequest): Promise<FakeReply> {
  try {
    return await respond(request)
  } catch (error) {
    console.error('fake:', error)
    return { status: 500, body: { message: (error as Error).message } }
  }
}

/** A server of JSON for one fake. What `answer` throws is the fake's own error: the test fails by a 500 that says why. */
export async function startFake(answer: Respond, tls?: { cert: string; key: string }): Promise<FakeServer> {
  const seen: FakeRequest[] = []
  const interruptions = new Map<string, Respond[]>()
  const listener: RequestListener = async (incoming, response) => {
    const url = new URL(incoming.url ?? '/', 'http://fake')
    const method = incoming.method ?? 'GET'
    const line = `${method} ${decodeURIComponent(url.pathname)}`
    const request = { method, url, line, headers: incoming.headers, body: await text(incoming) }
    seen.push(request)
    const respond = interruptions.get(line)?.shift() ?? answer
    const reply = await answerOrFault(respond, request)
    const isText = typeof reply.body === 'string'
    const type = { 'content-type': isText ? 'text/plain' : 'application/json; charset=utf-8' }
    response.writeHead(reply.status, { ...(reply.body === undefined ? {} : type), ...reply.headers })
    response.end(
      reply.body === undefined ? undefined : isText ? String(reply.body) : JSON.stringify(reply.body),
    )
  }
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    interrupt: (line, ...replies) =>
      void interruptions.set(line, [...(interruptions.get(line) ?? []), ...replies]),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
