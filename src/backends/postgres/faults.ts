import { BackendError, type Fault } from '../../domain/backend-error.ts'
import { connectionError } from '../../egress/network.ts'

/** SQLSTATE (PostgreSQL, appendix A) of an error from the server, translated or not, else `undefined`. */
export function stateOf(error: unknown): string | undefined {
  if (error instanceof BackendError) return stateOf(error.cause)
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

export const DEPENDED_ON = 'The role still owns something, or holds a privilege that another role granted.'

/** Classes (PostgreSQL, appendix A) after which the outcome of a COMMIT may be unknown, or nobody can be served. */
const BY_STATE: readonly [RegExp, Fault, string][] = [
  [/^28/, 'denied', 'PostgreSQL refused the login.'],
  [/^42501$/, 'denied', 'PostgreSQL refused: the role that Mayfly uses lacks a privilege.'],
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
  [/^/, 'denied', 'PostgreSQL answered with an error.'],
]

/** Errors that the client library finds before the server answers; they have no code. */
const BY_MESSAGE: readonly [RegExp, Fault, string][] = [
  [/server does not support SSL/, 'misconfigured', 'The PostgreSQL server does not offer TLS; see "tls".'],
  [/password must be a/, 'denied', 'PostgreSQL asks for a password, and there is none in the configuration.'],
]

/** By the code, or by the words of the client library; never by those of the server, which go to `detail`. */
export function toBackendError(error: unknown, signal?: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  const state = signal?.aborted === true ? undefined : stateOf(error)
  const text = error instanceof Error ? error.message : 'unknown'
  const options = { detail: `${state ?? 'client'}: ${text}`, cause: error }
  const known =
    state === undefined
      ? BY_MESSAGE.find(([pattern]) => pattern.test(text))
      : BY_STATE.find(([pattern]) => pattern.test(state))
  return known === undefined
    ? connectionError(error, 'PostgreSQL', signal)
    : // 28000 may blame one database (pg_hba.conf).
      new BackendError(known[1], known[2], { ...options, login: state === '28P01' })
}
