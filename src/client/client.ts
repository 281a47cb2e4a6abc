import type { TokenCache } from './access-tokens.ts'
import { createAdmin } from './admin.ts'
import { type Authorizer, createAuthorizer } from './authorize.ts'
import type { Auth, TokenAnswer, TokenRequest } from './log-in.ts'
import { newKey } from './new-key.ts'
import { entryPages, pages } from './paging.ts'
import { requestThrough } from './routes.ts'
import { runCalls } from './runs.ts'
import { type Call, type CallOptions, type Reply, type Sender, send } from './send.ts'
import { fetchStream, fetchTransport, type StreamTransport, type Transport } from './transport.ts'
import type {
  AuditFilter,
  EnrollRequest,
  IssuedCredential,
  IssueRequest,
  PageOptions,
  ScopeRequest,
  SignRequest,
} from './wire.ts'

export type { OAuthErrorCode } from '../api/shared.ts'
export type { AccessToken, TokenCache } from './access-tokens.ts'
export type { PrivateJwk } from './assertion.ts'
// biome-ignore lint/performance/noBarrelFile: this is `mayfly/client`, the one entry of the package for programs
export {
  MayflyError,
  type MayflyErrorCode,
  UnreachableError,
  type UnreachableReason,
} from './errors.ts'
export {
  type FollowOptions,
  followEvents,
  type LiveEntry,
  type LiveEvent,
  type OpenEvents,
  readEvents,
  type ServerEvent,
} from './events.ts'
export type { Auth, TokenAnswer, TokenRequest } from './log-in.ts'
export type { RunEvent, RunEventOptions } from './run-events.ts'
export type { Call, CallOptions, Reply } from './send.ts'
export type {
  StreamReply,
  StreamTransport,
  Transport,
  TransportReply,
  TransportRequest,
} from './transport.ts'
export type * from './wire.ts'

export interface ClientOptions {
  /** The address of the server, such as `https://mayfly.example.com`. */
  readonly server: string
  readonly auth: Auth
  /** `fetch` by default. */
  readonly transport?: Transport | undefined
  /** For replies of any length; `fetch` by default. */
  readonly streams?: StreamTransport | undefined
  /** How often to retry a request if that is safe; 3 by default. */
  readonly retries?: number | undefined
  /** For one try. By default as long as the server works on it: after each 30 seconds it must answer `GET /health`. */
  readonly timeoutMs?: number | undefined
  /** Keeps access tokens between processes. */
  readonly tokens?: TokenCache | undefined
  /** Aborts all calls. */
  readonly signal?: AbortSignal | undefined
  readonly userAgent?: string | undefined
  /** Epoch milliseconds. */
  readonly now?: (() => number) | undefined
}

export type Client = ReturnType<typeof createClient>

/**
 * A client of one server. Every method throws `MayflyError` if the server refuses, `UnreachableError` if no answer
 * comes, or the reason of the signal that aborts it.
 */
export function createClient(options: ClientOptions) {
  const sender: Sender = {
    server: addressOf(options.server),
    transport: options.transport ?? fetchTransport,
    streams: options.streams ?? fetchStream,
    userAgent: options.userAgent ?? 'mayfly-client',
    retries: options.retries ?? 3,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
  }
  const authorizer = createAuthorizer(sender, options.auth, options.now ?? Date.now, options.tokens)
  return {
    server: sender.server,
    ...credentialCalls(authorizer),
    ...selfCalls(authorizer),
    ...openCalls(sender),
    runs: runCalls(authorizer),
    /** The agent's audit entries; all with `admin:audit:read`. Newest first. */
    audit: (filter: AuditFilter = {}, page: PageOptions = {}) => entryPages(authorizer, filter, page),
    /** A token from `/oauth/token`: for another audience, with fewer scopes, or with `openid` an id token. */
    token: (request: TokenRequest = {}, options: CallOptions = {}): Promise<TokenAnswer> =>
      authorizer.requestToken(request, options),
    admin: createAdmin(authorizer),
    /** Any other route. */
    call: <T>(call: Call): Promise<Reply<T>> => authorizer.call<T>(call),
  }
}

/** The address without a slash at its end. Throws `TypeError` if it is not an http address. */
function addressOf(server: string): string {
  const url = new URL(server)
  if (
    !/^https?:$/.test(url.protocol) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username + url.password !== ''
  )
    throw new TypeError('The server must be an http or https address without user, query or fragment.')
  return url.href.replace(/\/+$/, '')
}

/** `idempotencyKey`: by default a new one, so that the client can ask again for an answer that was lost. */
export interface IssueOptions extends CallOptions {
  readonly idempotencyKey?: string | undefined
}

function credentialCalls(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  const issueOnce = (body: IssueRequest, key: string, signal: AbortSignal | undefined) => {
    const headers = { 'idempotency-key': key }
    return request('POST /api/v1/credentials', { body, headers, retry: 'always', signal })
  }
  return {
    issue: async (body: IssueRequest, options: IssueOptions = {}): Promise<IssuedCredential> => {
      const issued = await issueOnce(body, options.idempotencyKey ?? newKey(), options.signal)
      // If the first answer was lost, the server may have ended its credential, and repeats it without its secret.
      if (issued.token !== undefined || options.idempotencyKey !== undefined) return issued
      return issueOnce(body, newKey(), options.signal)
    },
    /** A credential of the agent, or of any agent with `admin:tokens:read`; without its secret. */
    credential: (id: string, options: CallOptions = {}) =>
      request('GET /api/v1/credentials/:id', { id, ...options }),
    /** Repeating it gives the same answer. */
    revoke: (id: string, options: CallOptions = {}) =>
      request('DELETE /api/v1/credentials/:id', { id, ...options }),
    /** The agent's active credentials, oldest first. */
    active: (page: PageOptions = {}) => pages(authorizer, 'GET /v1/active', {}, page),
    backends: async (options: CallOptions = {}) => (await request('GET /api/v1/backends', options)).backends,
    backend: (id: string, options: CallOptions = {}) =>
      request('GET /api/v1/backends/:id', { id, ...options }),
  }
}

export interface SigningKeyOptions extends CallOptions {
  readonly privateKey?: boolean | undefined
}

function selfCalls(authorizer: Authorizer) {
  const request = requestThrough(authorizer)
  return {
    status: (options: CallOptions = {}) => request('GET /v1/status', options),
    /** The public key; with `privateKey` also the private one, which the server records. */
    signingKey: ({ privateKey = false, signal }: SigningKeyOptions = {}) => {
      const query = { format: 'git', private_key: privateKey }
      return request('GET /v1/signing-key', { query, signal })
    },
    /** Signs a commit or a tag with the agent's key, which stays on the server. */
    sign: (body: SignRequest, options: CallOptions = {}) => request('POST /v1/sign', { body, ...options }),
    requestScopes: async (body: ScopeRequest, options: CallOptions = {}) => {
      const requested = await request('POST /v1/request', { body, ...options })
      await authorizer.watchRequest(requested.id)
      return requested
    },
    /** A request of the agent for more scopes, and what became of it. */
    scopeRequest: (id: string, options: CallOptions = {}) =>
      request('GET /v1/request/:id', { id, ...options }),
    /** Ends a login by an identity, and what it issued; the agent, too, if it has no other login. */
    logOut: async (options: CallOptions = {}): Promise<void> => {
      await request('DELETE /v1/login', { retry: 'unsent', ...options })
    },
    /** Deletes the agent and revokes all its credentials. */
    deleteSelf: (options: CallOptions = {}) => request('DELETE /v1/self', { retry: 'unsent', ...options }),
  }
}

/** Calls that need no authentication, and send none. */
function openCalls(sender: Sender) {
  const request = requestThrough({ call: (call) => send(sender, call) })
  const requestOnce = requestThrough({ call: (call) => send({ ...sender, retries: 0 }, call) })
  return {
    enroll: (body: EnrollRequest, options: CallOptions = {}) =>
      request('POST /v1/enroll', { body, ...options }),
    /** `proof`: a compact JWS by the enrolled key. It is good once, so the client does not retry. */
    enrollStatus: (id: string, proof: string, options: CallOptions = {}) =>
      requestOnce('GET /v1/enroll/:id/status', { id, headers: { 'enrollment-proof': proof }, ...options }),
    discovery: (options: CallOptions = {}) => request('GET /.well-known/openid-configuration', options),
    health: (options: CallOptions = {}) => request('GET /health', options),
    /** Throws `store_unavailable` while the server cannot issue. */
    ready: (options: CallOptions = {}) => request('GET /readyz', options),
  }
}
