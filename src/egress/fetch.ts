import {
  type ClientRequestArgs,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
} from 'node:http'
import { request as secureRequest, Agent as TlsAgent } from 'node:https'
import { connect, isIP, type NetConnectOpts } from 'node:net'
import { unlessAborted } from '../domain/abort.ts'
import { BackendError, misconfigured, unavailable } from '../domain/backend-error.ts'
import { MAX_UPSTREAM_BYTES } from '../domain/limits.ts'
import { type AddressLookup, resolveChecked } from './address.ts'
import { createListenerCheck, type ListenerRules, listenerRulesOf } from './listener.ts'
import type { Network } from './network.ts'
import { connectionError, holdUntil } from './network.ts'

export interface FetchOptions {
  /** The upstream is on this machine or in its own network: permits loopback addresses. */
  readonly local?: boolean
  /** PEM of the certificate authorities to trust instead of the system's. */
  readonly ca?: string
  /** PEM of a client certificate and its key. */
  readonly cert?: string
  readonly key?: string
  /** Longest reply, where 256 KiB do not do: GitHub repeats some kilobytes for each repository that a request names. */
  readonly maxBytes?: number
}

export interface EgressOptions {
  /** The upstream is on this machine or in its own network: permits loopback and unique-local addresses. */
  readonly local: boolean
  readonly lookup: AddressLookup
  readonly timeoutMs: number
  /** For connections without TLS. */
  readonly checkListener: Network['checkListener']
}

/** RFC 9110 §10.1.5. Networks in front of many services turn requests without one away, and GitHub refuses them. */
const USER_AGENT = 'mayfly'

const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Statuses whose reply has no body; `Response` refuses one. */
const BODILESS = new Set([204, 205, 304])
const IDLE_MS = 4_000

/** Makes the agent use a connection again only for the address that the name has now, so that a name that moves is followed. */
function boundToAddress<A extends PlainAgent>(agent: A): A {
  const nameOf = agent.getName.bind(agent)
  return Object.assign(agent, {
    getName: (target: ClientRequestArgs & { checkedAddress?: string } = {}) =>
      `${nameOf(target)}:${target.checkedAddress ?? ''}`,
  })
}

/** Verified TLS gives nothing to another listener; plain HTTP does. */
function checkingListeners(agent: PlainAgent, check: Network['checkListener']): PlainAgent {
  return Object.assign(agent, {
    createConnection: (target: NetConnectOpts) => {
      const socket = connect(target)
      holdUntil(socket, check)
      return socket
    },
  })
}

/**
 * A `fetch` for upstreams: the address is resolved, checked and connected to; redirects are refused; `timeoutMs` in
 * all; a reply over 256 KiB, or `maxBytes`, is refused. The reply is complete when the promise resolves. Throws `BackendError`.
 */
export function createEgressFetch(
  options: EgressOptions,
): (url: string, init?: RequestInit, how?: FetchOptions) => Promise<Response> {
  const agents = { keepAlive: true, timeout: IDLE_MS, maxSockets: 32 }
  const plain = boundToAddress(checkingListeners(new PlainAgent(agents), options.checkListener))
  // One for each set of certificates, so that a connection is never used under the trust of another one.
  const secure = new Map<string, TlsAgent>()
  const secureAgent = ({ ca, cert, key }: FetchOptions) => {
    const id = JSON.stringify([ca, cert, key])
    const known = secure.get(id) ?? boundToAddress(new TlsAgent({ ...agents, ca, cert, key }))
    secure.set(id, known)
    return known
  }
  return async (url, init = {}, how = {}) => {
    const deadline = AbortSignal.timeout(options.timeoutMs)
    const signal = init.signal ? AbortSignal.any([init.signal, deadline]) : deadline
    try {
      signal.throwIfAborted()
      const target = requireUrl(url)
      const request = new Request(target, { ...init, signal })
      const body = Buffer.from(await request.arrayBuffer())
      const local = how.local ?? options.local
      const { lookup } = options
      const address = await unlessAborted(resolveChecked(target.hostname, { local, lookup }), signal)
      const agent = target.protocol === 'https:' ? secureAgent(how) : plain
      const maxBytes = how.maxBytes ?? MAX_UPSTREAM_BYTES
      return await exchange(target, request, body, { address, agent, signal, maxBytes })
    } catch (error) {
      throw error instanceof BackendError ? error : connectionError(error, 'The upstream', signal)
    }
  }
}

/** What one backend may use of the network, by the rules for its kind and its configuration. */
export function networkOf(
  kind: Parameters<typeof listenerRulesOf>[0],
  config: Parameters<typeof listenerRulesOf>[1],
  { lookup, timeoutMs, log }: Pick<EgressOptions, 'lookup' | 'timeoutMs'> & Pick<ListenerRules, 'log'>,
): Network & { readonly fetch: ReturnType<typeof createEgressFetch> } {
  const checkListener = createListenerCheck({ ...listenerRulesOf(kind, config), log })
  return {
    checkListener,
    fetch: createEgressFetch({ local: false, timeoutMs, lookup, checkListener }),
    resolve: (hostname, options) => resolveChecked(hostname, { ...options, lookup }),
  }
}

function requireUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw misconfigured('The address of the upstream is not an http or https URL.')
  }
  if (url.username !== '' || url.password !== '') {
    throw misconfigured('The address of the upstream contains a login; configure it separately.')
  }
  return url
}

interface Way {
  readonly address: string
  readonly agent: PlainAgent | TlsAgent
  readonly signal: AbortSignal
  readonly maxBytes: number
}

async function exchange(target: URL, request: Request, body: Buffer, way: Way): Promise<Response> {
  const incoming = await send(target, request, body, way)
  const status = incoming.statusCode ?? 0
  try {
    if (REDIRECTS.has(status)) {
      throw misconfigured('The upstream sent a redirect, which Mayfly never follows.')
    }
    if (status < 200 || status > 599) {
      throw unavailable('The upstream sent an invalid status.', { reason: 'bad_answer' })
    }
    if ((incoming.headers['content-encoding'] ?? 'identity') !== 'identity') {
      throw unavailable('The upstream compressed its reply, which was not requested.', {
        reason: 'bad_answer',
      })
    }
    const content = await readAll(incoming, way.maxBytes)
    const headers = new Headers()
    for (const [name, values] of Object.entries(incoming.headersDistinct)) {
      for (const value of values ?? []) headers.append(name, value)
    }
    const init = { status, statusText: incoming.statusMessage ?? '', headers }
    return new Response(BODILESS.has(status) ? null : content, init)
  } catch (error) {
    incoming.destroy()
    throw error
  }
}

function send(target: URL, request: Request, body: Buffer, way: Way): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const headers = new Headers(request.headers)
  headers.delete('host')
  headers.set('user-agent', USER_AGENT)
  headers.set('accept-encoding', 'identity')
  if (body.length > 0 || !['GET', 'HEAD'].includes(request.method)) {
    headers.set('content-length', String(body.length))
  }
  const family = isIP(way.address)
  const start = target.protocol === 'https:' ? secureRequest : plainRequest
  const outgoing = start(target, {
    // For `boundToAddress`.
    ...{ checkedAddress: way.address },
    method: request.method,
    headers: Object.fromEntries(headers),
    agent: way.agent,
    signal: way.signal,
    // Connect to the checked address without a second DNS lookup. TLS still checks the name in the URL.
    lookup: (_hostname, lookupOptions, done) => {
      if (lookupOptions.all === true) done(null, [{ address: way.address, family }])
      else done(null, way.address, family)
    },
  })
  outgoing.once('response', resolve)
  // Otherwise Node drops the connection after a 101 and reports nothing.
  outgoing.once('upgrade', (_reply, socket) => {
    socket.destroy()
    reject(
      unavailable('The upstream switched to another protocol, which was not requested.', {
        reason: 'bad_answer',
      }),
    )
  })
  outgoing.on('error', reject)
  outgoing.end(body)
  return promise
}

async function readAll(incoming: IncomingMessage, maxBytes: number): Promise<Buffer<ArrayBuffer>> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of incoming as AsyncIterable<Buffer>) {
    length += part.length
    if (length > maxBytes) {
      throw unavailable('The reply of the upstream is too long.', {
        reason: 'bad_answer',
      })
    }
    parts.push(part)
  }
  return Buffer.concat(parts)
}
