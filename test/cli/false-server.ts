import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Got {
  readonly method: string
  readonly path: string
  readonly form: URLSearchParams
  readonly authorization: string | undefined
}

/** What a route answers: a status with its JSON. `undefined` cuts the connection, `'silence'` never answers. */
export type Answer = readonly [status: number, body: unknown] | 'silence' | undefined
export type Routes = Readonly<Record<string, (got: Got, url: string) => Answer>>

export const TOKEN = `mop_${'a'.repeat(64)}`
export const SESSION = 'ses_06dzt7n1x5q9v3k6c8m2t4w0pb'

/** What a server of ours answers to the command; a test replaces what is to be hostile. */
export const HONEST: Routes = {
  'GET /health': () => [200, { status: 'ok' }],
  'GET /.well-known/openid-configuration': (_, url) => [
    200,
    {
      issuer: url,
      jwks_uri: `${url}/.well-known/jwks.json`,
      authorization_endpoint: `${url}/console/allow`,
      device_authorization_endpoint: `${url}/oauth/device_authorization`,
    },
  ],
  'GET /.well-known/jwks.json': () => [200, { keys: [] }],
  'POST /oauth/device_authorization': (_, url) => [200, codes(url)],
  'POST /oauth/token': () => [200, grant()],
  'GET /v1/admin/me': () => [200, me()],
  [`DELETE /v1/admin/sessions/${SESSION}`]: () => [204, undefined],
}

export const codes = (url: string, more: object = {}) => ({
  device_code: `mdc_${'d'.repeat(64)}`,
  user_code: 'WDJB-MJHT',
  verification_uri: `${url}/console/allow`,
  expires_in: 600,
  interval: 1,
  ...more,
})

export const grant = (more: object = {}) => ({
  access_token: TOKEN,
  token_type: 'Bearer',
  expires_in: 43_200,
  scope: 'admin:*',
  ...more,
})

export const me = (more: object = {}) => ({
  kind: 'operator',
  id: 'op_06dzs4k8v2n6x1c9t5q7m3w0hd',
  name: 'Alice',
  email: 'alice@example.com',
  scopes: ['admin:*'],
  operations: [],
  session: { id: SESSION, expires_at: '2030-01-01T00:00:00Z', may_register_until: null },
  ...more,
})

/** A server that is not ours; `got` holds what it was asked. */
export async function startFalseServer(routes: Routes = {}) {
  const all: Routes = { ...HONEST, ...routes }
  const got: Got[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const path = request.url ?? ''
    const one: Got = {
      method: request.method ?? '',
      path,
      form: new URLSearchParams(body),
      authorization: request.headers.authorization,
    }
    got.push(one)
    const reply = all[`${one.method} ${path.split('?')[0]}`]?.(one, url)
    if (reply === 'silence') return
    if (reply === undefined) return void request.socket.destroy()
    response.writeHead(reply[0], { 'content-type': 'application/json' })
    response.end(reply[1] === undefined ? undefined : JSON.stringify(reply[1]))
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    got,
    polls: () => got.filter(({ path }) => path === '/oauth/token').length,
    close: () => {
      server.closeAllConnections()
      return new Promise((done) => server.close(done))
    },
  }
}
