import { createAdmin } from './admin.ts'
import {
  type Auth,
  type Authorizer,
  createAuthorizer,
  type TokenAnswer,
  type TokenCache,
  type TokenWish,
} from './authorize.ts'
import { entryPages, pages } from './paging.ts'
import { type Call, type CallOptions, path, type Reply, type Sender, send } from './send.ts'
import { fetchTransport, type Transport } from './transport.ts'
import type {
  ActiveCredential,
  AgentStatus,
  AuditEntry,
  AuditFilter,
  BackendInfo,
  CredentialInfo,
  Discovery,
  Enrolled,
  EnrollmentPoll,
  EnrollRequest,
  Health,
  IssuedCredential,
  IssueRequest,
  PageOptions,
  RequestedScopes,
  RevokedCredential,
  ScopeRequest,
  Signed,
  SigningKey,
  SignRequest,
} from './wire.ts'

export type { PrivateJwk } from './assertion.ts'
export type { AccessToken, Auth, TokenAnswer, TokenCache, TokenWish } from './authorize.ts'
// biome-ignore lint/performance/noBarrelFile: this is `mayfly/client`, the one entry of the package for programs
export {
  MayflyError,
  type MayflyErrorCode,
  type OAuthErrorCode,
  UnreachableError,
  type UnreachableReason,
} from './errors.ts'
export type { Call, CallOptions, Reply } from './send.ts'
export type { Transport, TransportReply, TransportRequest } from './transport.ts'
export type * from './wire.ts'

export interface ClientOptions {
  /** The address of the server, such as `https://mayfly.example.com`. */
  readonly server: string
  readonly auth: Auth
  /** `fetch` by default. */
  readonly transport?: Transport | undefined
  /** How often a request is tried again when that is safe; 3 by default. */
  readonly retries?: number | undefined
  /** For one try; 30 seconds by default. */
  readonly timeoutMs?: number | undefined
  /** Where access tokens are kept between processes. */
  readonly tokens?: TokenCache | undefined
  /** Ends all calls. */
  readonly signal?: AbortSignal | undefined
  readonly userAgent?: string | undefined
  /** Epoch milliseconds. */
  readonly now?: (() => number) | undefined
}

export type Client = ReturnType<typeof createClient>

/**
 * A client of one server. Every method throws `MayflyError` when the server refuses, `UnreachableError` when no
 * answer came, or the reason of the signal that ended it.
 */
export function createClient(options: ClientOptions) {
  const sender: Sender = {
    server: addressOf(options.server),
    transport: options.transport ?? fetchTransport,
    userAgent: options.userAgent ?? 'mayfly-client',
    retries: options.retries ?? 3,
    timeoutMs: options.timeoutMs ?? 30_000,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }
  const authorizer = createAuthorizer(sender, options.auth, options.now ?? Date.now, options.tokens)
  return {
    server: sender.server,
    ...credentialCalls(authorizer),
    ...selfCalls(authorizer),
    ...openCalls(sender),
    /** Of the agent; with `admin:audit:read` of all. Newest first. */
    audit: (filter: AuditFilter = {}, page: PageOptions = {}) =>
      entryPages<AuditEntry>(authorizer, '/api/v1/audit', { ...filter }, page),
    /** A token from `/oauth/token` for another audience, with fewer scopes, or with `openid` an id token. */
    token: (wish: TokenWish = {}, call: CallOptions = {}): Promise<TokenAnswer> =>
      authorizer.requestToken(wish, call),
    admin: createAdmin(authorizer),
    /** Any other route. */
    call: <T>(call: Call): Promise<Reply<T>> => authorizer.call<T>(call),
  }
}

/** Without the slash at its end. Throws `TypeError` for what is no http address. */
function addressOf(server: string): string {
  const url = new URL(server)
  if (
    !/^https?:$/.test(url.protocol) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username + url.password !== ''
  )
    throw new TypeError('The server is an http or https address without user, query or fragment.')
  return url.href.replace(/\/+$/, '')
}

/** `idempotencyKey`: made where absent, so that a lost answer can be asked for again. */
export interface IssueOptions extends CallOptions {
  readonly idempotencyKey?: string | undefined
}

/** Unlike any other of this agent within a day; no secret, and so not worth loading the cryptography for. */
function newKey(): string {
  const random = () => Math.random().toString(36).slice(2)
  return `${Date.now().toString(36)}-${random()}${random()}`
}

function credentialCalls(authorizer: Authorizer) {
  const issueOnce = async (body: IssueRequest, key: string, signal: AbortSignal | undefined) => {
    const headers = { 'idempotency-key': key }
    const call: Call = { method: 'POST', path: '/api/v1/credentials', body, headers, retry: 'always', signal }
    return (await authorizer.call<IssuedCredential>(call)).body
  }
  return {
    issue: async (request: IssueRequest, options: IssueOptions = {}): Promise<IssuedCredential> => {
      const key = options.idempotencyKey ?? newKey()
      const issued = await issueOnce(request, key, options.signal)
      // A first answer that was lost may have ended its credential: what is repeated then has no secret any more.
      if (issued.token !== undefined || options.idempotencyKey !== undefined) return issued
      return issueOnce(request, newKey(), options.signal)
    },
    /** Of the agent, or of any with `admin:tokens:read`; without its secret. */
    credential: async (id: string, options: CallOptions = {}): Promise<CredentialInfo> =>
      (
        await authorizer.call<CredentialInfo>({
          method: 'GET',
          path: path`/api/v1/credentials/${id}`,
          ...options,
        })
      ).body,
    /** Again and again gives the same answer. */
    revoke: async (id: string, options: CallOptions = {}): Promise<RevokedCredential> => {
      const call = { method: 'DELETE', path: path`/api/v1/credentials/${id}`, ...options } as const
      return (await authorizer.call<RevokedCredential>(call)).body
    },
    /** What the agent holds, oldest first. */
    active: (page: PageOptions = {}) => pages<ActiveCredential>(authorizer, '/v1/active', {}, page),
    backends: async (options: CallOptions = {}): Promise<BackendInfo[]> => {
      const call = { method: 'GET', path: '/api/v1/backends', ...options } as const
      return (await authorizer.call<{ backends: BackendInfo[] }>(call)).body.backends
    },
    backend: async (id: string, options: CallOptions = {}): Promise<BackendInfo> =>
      (await authorizer.call<BackendInfo>({ method: 'GET', path: path`/api/v1/backends/${id}`, ...options }))
        .body,
  }
}

export interface SigningKeyOptions extends CallOptions {
  readonly privateKey?: boolean | undefined
}

function selfCalls(authorizer: Authorizer) {
  return {
    status: async (options: CallOptions = {}): Promise<AgentStatus> =>
      (await authorizer.call<AgentStatus>({ method: 'GET', path: '/v1/status', ...options })).body,
    /** The public half; with `privateKey` the private one too, and that is recorded. */
    signingKey: async ({ privateKey = false, signal }: SigningKeyOptions = {}): Promise<SigningKey> => {
      const query = { format: 'git', private_key: privateKey }
      return (await authorizer.call<SigningKey>({ method: 'GET', path: '/v1/signing-key', query, signal }))
        .body
    },
    /** Signs a commit or a tag with the agent's key, which stays with the server. */
    sign: async (body: SignRequest, options: CallOptions = {}): Promise<Signed> =>
      (await authorizer.call<Signed>({ method: 'POST', path: '/v1/sign', body, ...options })).body,
    requestScopes: async (body: ScopeRequest, options: CallOptions = {}): Promise<RequestedScopes> => {
      const call = { method: 'POST', path: '/v1/request', body, ...options } as const
      const requested = (await authorizer.call<RequestedScopes>(call)).body
      await authorizer.heedDecision(requested.id)
      return requested
    },
    /** The agent ends, with all that it holds. */
    deleteSelf: async (options: CallOptions = {}): Promise<void> => {
      await authorizer.call({ method: 'DELETE', path: '/v1/self', retry: 'unsent', ...options })
    },
  }
}

/** What needs no authentication: none is sent. */
function openCalls(sender: Sender) {
  return {
    enroll: async (body: EnrollRequest, options: CallOptions = {}): Promise<Enrolled> =>
      (await send<Enrolled>(sender, { method: 'POST', path: '/v1/enroll', body, ...options })).body,
    /** `proof`: a compact JWS by the enrolled key, good once; so this is tried once only. */
    enrollStatus: async (id: string, proof: string, options: CallOptions = {}): Promise<EnrollmentPoll> => {
      const headers = { 'enrollment-proof': proof }
      const call = { method: 'GET', path: path`/v1/enroll/${id}/status`, headers, ...options } as const
      return (await send<EnrollmentPoll>({ ...sender, retries: 0 }, call)).body
    },
    discovery: async (options: CallOptions = {}): Promise<Discovery> => {
      const call = { method: 'GET', path: '/.well-known/openid-configuration', ...options } as const
      return (await send<Discovery>(sender, call)).body
    },
    health: async (options: CallOptions = {}): Promise<Health> =>
      (await send<Health>(sender, { method: 'GET', path: '/health', ...options })).body,
    /** Throws `store_unavailable` while it cannot issue. */
    ready: async (options: CallOptions = {}): Promise<Health> =>
      (await send<Health>(sender, { method: 'GET', path: '/readyz', ...options })).body,
  }
}
