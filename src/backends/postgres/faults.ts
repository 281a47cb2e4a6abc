import { BackendError, type Fault } from '../kind.ts'

/** SQLSTATE (PostgreSQL, appendix A) of an error from the server, else `undefined`. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** The same of an error that was already translated. */
export function stateOf(error: unknown): string | undefined {
  return sqlState(error instanceof BackendError ? error.cause : error)
}

export const DEPENDED_ON = 'The role still owns something, or holds a privilege that another role granted.'

/** Classes (PostgreSQL, appendix A) after which the outcome of a COMMIT may be unknown, or nobody can be served. */
const BY_STATE: readonly [RegExp, Fault, string][] = [
  [/^28/, 'denied', 'PostgreSQL refused the login.'],
  [/^42501$/, 'denied', 'PostgreSQL refused: the role that Mayfly uses lacks a privilege.'],
  [/^01007$/, 'denied', 'The role that Mayfly uses cannot grant that privilege on to others.'],
  [/^3D000$/, 'misconfigured', 'The database does not exist.'],
  [/^3F000$/, 'misconfigured', 'A schema that is to be granted does not exist.'],
  [/^42P01$/, 'misconfigured', 'A statement names a table that does not exist (name it with its schema).'],
  [/^42704$/, 'misconfigured', 'A statement names a role or an object that does not exist.'],
  [/^(42|22|26|34|0A)/, 'misconfigured', 'A grant statement is not valid.'],
  [/^25006$/, 'unavailable', 'PostgreSQL only reads: it is a standby, or was made read-only.'],
  // The connection is lost, shutting down or refused: nobody else would be served either.
  [/^(08|57P|53300|40003)/, 'unavailable', 'PostgreSQL cannot take the request at this time.'],
  // Answers of a server that works. The transaction was rolled back, so nothing exists.
  [/^55P03$/, 'denied', 'PostgreSQL refused: another transaction holds a lock that is needed.'],
  [/^57014$/, 'denied', 'PostgreSQL canceled the statement.'],
  [/^53/, 'denied', 'PostgreSQL refused: it has too little memory or disk space.'],
  [/^54/, 'denied', 'PostgreSQL refused: the request exceeds one of its limits.'],
  [/^40/, 'denied', 'PostgreSQL rolled the transaction back because of a concurrent one.'],
  [/^2BP01$/, 'denied', DEPENDED_ON],
]

/** Errors that the client library finds before the server answers; they have no code. */
const BY_MESSAGE: readonly [RegExp, Fault, string][] = [
  [/server does not support SSL/, 'misconfigured', 'The PostgreSQL server does not offer TLS; see "tls".'],
  [/password must be a/, 'denied', 'PostgreSQL asks for a password, and there is none in the configuration.'],
]

/** Codes of Node's TLS for a certificate that is not trusted or of another name. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/
const TIMEOUT = /^(ETIMEDOUT|ERR_SOCKET_CONNECTION_TIMEOUT)$/

/** What went wrong, by its type and code, or by the words of the client library; never by those of the server. Upstream text goes to `detail`. */
export function toBackendError(error: unknown, signal?: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  if (signal?.aborted === true) {
    return new BackendError('timeout', 'PostgreSQL did not finish in time.', { cause: error })
  }
  const state = sqlState(error)
  const code = errorCode(error)
  const detail = `${state ?? code}: ${error instanceof Error ? error.message : 'unknown'}`
  if (state !== undefined) {
    const found = BY_STATE.find(([pattern]) => pattern.test(state))
    return found === undefined
      ? new BackendError('denied', 'PostgreSQL answered with an error.', { detail, cause: error })
      : new BackendError(found[1], found[2], { detail, cause: error })
  }
  if (CERTIFICATE.test(code)) {
    return new BackendError('misconfigured', 'The certificate of the PostgreSQL server is not trusted.', {
      detail,
      cause: error,
    })
  }
  const known = BY_MESSAGE.find(([pattern]) => error instanceof Error && pattern.test(error.message))
  if (known !== undefined) return new BackendError(known[1], known[2], { detail, cause: error })
  if (TIMEOUT.test(code)) {
    return new BackendError('timeout', 'PostgreSQL did not answer in time.', { detail, cause: error })
  }
  return new BackendError('unavailable', 'PostgreSQL cannot be reached.', { detail, cause: error })
}

function errorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return 'no code'
}
