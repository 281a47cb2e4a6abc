import type { ErrorCode, OAuthErrorCode } from '../api/shared.ts'
import type { HealthReason } from './wire.ts'

/** `unexpected_reply`: the answer is not from a Mayfly server; perhaps a proxy answered. */
export type MayflyErrorCode = ErrorCode | OAuthErrorCode | 'unexpected_reply'

export interface MayflyErrorFacts {
  code: MayflyErrorCode
  /** The status of the HTTP reply; 0 if nothing was sent. */
  status: number
  message: string
  requestId?: string | undefined
  retryAfterSeconds?: number | undefined
  /** For `insufficient_scope`: the scope that the caller lacks. */
  scope?: string | undefined
  /** Why the upstream of a backend could not be used with a new configuration, for full administrators. */
  reason?: HealthReason | undefined
}

/** The server answered, and the answer is an error. */
export class MayflyError extends Error {
  override readonly name = 'MayflyError'
  readonly code: MayflyErrorCode
  readonly status: number
  readonly requestId: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly scope: string | undefined
  readonly reason: HealthReason | undefined

  constructor(facts: MayflyErrorFacts) {
    super(facts.message)
    this.code = facts.code
    this.status = facts.status
    this.requestId = facts.requestId
    this.retryAfterSeconds = facts.retryAfterSeconds
    this.scope = facts.scope
    this.reason = facts.reason
  }
}

/** Whether the server itself says that there is no such thing (any more). A bare 404 may come from an ingress while the server restarts. */
export const isGone = (error: unknown): error is MayflyError =>
  error instanceof MayflyError && (error.code === 'not_found' || error.code === 'gone')

/** The same error where several backends are asked: it says which one it is about. A login is of none. */
export function aboutBackend(error: unknown, backend: string): unknown {
  if (!(error instanceof MayflyError) || error.status === 401) return error
  return new MayflyError({ ...error, message: `${backend}: ${error.message}` })
}

const MESSAGES = {
  refused: 'nothing is listening there',
  dns: 'the name cannot be resolved',
  timeout: 'it did not answer in time',
  reset: 'the connection was closed before an answer came',
  socket: 'the socket file does not exist, or you may not use it',
  tls_untrusted: 'its certificate is not signed by a trusted authority',
  tls_expired: 'its certificate is not valid today',
  tls_hostname: 'its certificate is for another name',
  tls_protocol: 'it does not speak TLS there',
  not_http: 'the answer is not HTTP',
  network: 'the connection failed',
}
export type UnreachableReason = keyof typeof MESSAGES

const REASONS: Readonly<Record<string, UnreachableReason>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  TimeoutError: 'timeout',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  ENOENT: 'socket',
  EACCES: 'socket',
  ENOTSOCK: 'socket',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_untrusted',
  CERT_UNTRUSTED: 'tls_untrusted',
  CERT_HAS_EXPIRED: 'tls_expired',
  CERT_NOT_YET_VALID: 'tls_expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_hostname',
  EPROTO: 'tls_protocol',
}

/** Finds the reason in an error of `fetch` or `node:http`. */
export function reasonOf(cause: unknown): UnreachableReason {
  for (const code of codesOf(cause)) {
    const known = REASONS[code]
    if (known !== undefined) return known
    if (code.startsWith('HPE_')) return 'not_http'
    if (code.startsWith('ERR_SSL_')) return 'tls_protocol'
    if (code.startsWith('ERR_TLS_') || code.startsWith('CERT_')) return 'tls_untrusted'
  }
  return 'network'
}

/** The codes of an error, of its causes, and of the errors it aggregates. */
function codesOf(cause: unknown, depth = 0): string[] {
  if (!(cause instanceof Error) || depth > 4) return []
  const { code, errors } = cause as { code?: unknown; errors?: unknown }
  const inner = Array.isArray(errors) ? errors.flatMap((one) => codesOf(one, depth + 1)) : []
  return [
    ...(typeof code === 'string' ? [code] : []),
    cause.name,
    ...inner,
    ...codesOf(cause.cause, depth + 1),
  ]
}

/** No answer came. Says what failed, and whether the server may have carried out the request. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
  readonly server: string
  readonly reason: UnreachableReason
  /** False if there was no connection, so that the server cannot have carried it out. */
  readonly mayHaveArrived: boolean

  constructor(server: string, cause: unknown, reason: UnreachableReason = reasonOf(cause)) {
    super(`Cannot reach ${server}: ${MESSAGES[reason]}.`, { cause })
    this.server = server
    this.reason = reason
    this.mayHaveArrived = ['timeout', 'reset', 'not_http', 'network'].includes(reason)
  }
}
