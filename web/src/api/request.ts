import { createAdmin } from '../../../src/client/admin.ts'
import type { Authorizer } from '../../../src/client/authorize.ts'
import { MayflyError } from '../../../src/client/errors.ts'
import { requestThrough } from '../../../src/client/routes.ts'
import { openStream, type Sender, send } from '../../../src/client/send.ts'
import {
  fetchStream,
  fetchTransport,
  type StreamTransport,
  type Transport,
  type TransportRequest,
} from '../../../src/client/transport.ts'
import { askedIn, confirmed } from './confirm.ts'
import { leave, readKey } from './session.ts'

/** As the session of this browser. Has the person confirm where the server asks for it, and repeats the request with that. */
const transport: Transport = async (request) => {
  const key = isLogin(request) ? null : readKey()
  const reply = await fetchTransport(withHeaders(request, key === null ? {} : { 'mayfly-console': key }))
  if (reply.status === 401) leaveAs(key)
  const asked = reply.status === 403 ? askedIn(reply.text) : undefined
  if (asked === undefined || key === null) return reply
  const headers = { 'mayfly-console': key, 'mayfly-confirmation': await confirmed(asked) }
  // Now it is carried out, which may take the server longer than the question did.
  return fetchTransport(withHeaders(request, headers))
}

/** The login with this key has ended. A new one may have begun since the request was sent, which it does not end. */
function leaveAs(key: string | null): void {
  if (key !== null && key === readKey()) leave()
}

/** A login that is refused ends no session: somebody may be logged in while they open a link that is used up. */
const isLogin = ({ url }: TransportRequest): boolean => new URL(url).pathname.startsWith('/v1/console/login')

const streams: StreamTransport = async (request) => {
  const key = readKey()
  const reply = await fetchStream(withHeaders(request, { 'mayfly-console': key ?? '' }))
  if (reply.status === 401) leaveAs(key)
  return reply
}

function withHeaders(request: TransportRequest, more: Record<string, string>): TransportRequest {
  const { 'user-agent': _, ...headers } = request.headers
  return { ...request, headers: { ...headers, ...more } }
}

const sender: Sender = {
  server: location.origin,
  transport,
  streams,
  userAgent: '',
  retries: 2,
  timeoutMs: undefined,
}
export const authorizer: Authorizer = {
  call: (call) => send(sender, call),
  stream: (call) => openStream(sender, call),
  watchRequest: async () => undefined,
  requestToken: async () => {
    throw new MayflyError({ code: 'unexpected_reply', status: 0, message: 'A session asks for no tokens.' })
  },
}

/** Any route of the interface, typed by its row: `request('GET /v1/admin/agents/:name', { id })`. */
export const request = requestThrough(authorizer)
/** The same calls as in `mayfly/client`. */
export const admin = createAdmin(authorizer)
