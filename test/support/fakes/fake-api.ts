import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface FakeRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  /** Undefined unless the request says that it is JSON. */
  readonly json: Record<string, unknown> | undefined
  /** Undefined unless the request says that it is a form. */
  readonly form: URLSearchParams | undefined
  /** The parts of the path that the route names, decoded. */
  readonly parts: readonly string[]
}

export type FakeReply = readonly [status: number, body?: unknown, headers?: Readonly<Record<string, string>>]
export type FakeRoute = (request: FakeRequest) => FakeReply

export interface FakeApi {
  readonly url: string
  /** Every request so far, as `METHOD /path`. */
  readonly seen: string[]
  close(): Promise<void>
}

/**
 * A server of one vendor's API. A route is `POST /v1/projects/:project/keys`; `:x` is one part of the path, as most routers
 * take it: before it is decoded.
 */
export async function startFakeApi(
  routes: Readonly<Record<string, FakeRoute>>,
  missing: FakeReply,
): Promise<FakeApi> {
  const table = Object.entries(routes).map(([route, answer]) => {
    const [method = '', path = ''] = route.split(' ')
    return { method, path: new RegExp(`^${path.replace(/:\w+/g, '([^/]+)')}$`), answer }
  })
  // In the order in which they arrive, also those that the client has given up.
  let before = Promise.resolve()
  const server = createServer((incoming, response) => {
    const arriving = text(incoming).catch(() => undefined)
    before = before.then(async () => handle(incoming, response, await arriving))
  })
  function handle(incoming: IncomingMessage, response: ServerResponse, body: string | undefined): void {
    if (body === undefined) return
    const url = new URL(incoming.url ?? '/', 'http://fake.test')
    const type = String(incoming.headers['content-type']).split(';')[0]
    const found = table.find(({ method, path }) => method === incoming.method && path.test(url.pathname))
    const request: FakeRequest = {
      method: incoming.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      json: /json$/.test(type ?? '') && body !== '' ? JSON.parse(body) : undefined,
      form: type === 'application/x-www-form-urlencoded' ? new URLSearchParams(body) : undefined,
      parts: (found?.path.exec(url.pathname) ?? []).slice(1).map(decodeURIComponent),
    }
    fake.seen.push(`${request.method} ${incoming.url}`)
    const [status, reply, headers] = found?.answer(request) ?? missing
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(reply === undefined ? undefined : JSON.stringify(reply))
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fake: FakeApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return fake
}

/** Whether the request carries this token (RFC 6750 §2.1). */
export const hasBearer = ({ headers }: FakeRequest, token: string) =>
  headers.authorization === `Bearer ${token}`

let counter = 0
/** A new id of the vendor's form. */
export function nextId(prefix = ''): string {
  counter += 1
  return `${prefix}${counter.toString(36).padStart(12, '0')}`
}
