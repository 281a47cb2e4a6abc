import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import { BackendError } from '../domain/backend-error.ts'
import { SsoFailure } from '../domain/people/sso.ts'

/** The client is not known there, or its secret is wrong (RFC 6749 §5.2 and §4.1.2.1). */
const OF_THE_CLIENT = new Set([
  'invalid_client',
  'unauthorized_client',
  'unsupported_response_type',
  'invalid_scope',
])
/** The code of the library where the reply has a status that it does not expect. */
const NOT_CONFORM = 'OAUTH_RESPONSE_IS_NOT_CONFORM'
const TIMESTAMP = 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED'
const AWAY = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT'])

/**
 * What went wrong with a provider. Of what the library throws, only codes and its own words are kept: its causes hold whole
 * replies, with tokens.
 */
export function failureOf(error: unknown): SsoFailure {
  if (error instanceof SsoFailure) return error
  const egress = causesOf(error).find((one) => one instanceof BackendError)
  if (egress !== undefined) {
    const isAway = egress.fault === 'unavailable' || egress.fault === 'timeout'
    return new SsoFailure(isAway ? 'unreachable' : 'misconfigured', egress.detail ?? egress.message)
  }
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError)
    return ofCode(error.error, 'status' in error ? Number(error.status) : 400)
  if (error instanceof WWWAuthenticateChallengeError)
    return new SsoFailure('misconfigured', `the provider answered with status ${error.status}`)
  if (error instanceof ClientError) return ofClient(error)
  return new SsoFailure('invalid', error instanceof Error ? error.message : 'unknown')
}

function ofCode(code: string, status: number): SsoFailure {
  const detail = `the provider answered ${code.slice(0, 64)}`
  if (status >= 500 || code === 'server_error' || code === 'temporarily_unavailable')
    return new SsoFailure('unreachable', detail)
  return new SsoFailure(OF_THE_CLIENT.has(code) ? 'misconfigured' : 'refused', detail)
}

function ofClient({ code, message, cause }: ClientError): SsoFailure {
  const detail = `${message}${code === undefined ? '' : ` (${code})`}`
  if (code === TIMESTAMP) return new SsoFailure('clock', detail)
  if (code !== undefined && AWAY.has(code)) return new SsoFailure('unreachable', detail)
  if (code === NOT_CONFORM && cause instanceof Response)
    return new SsoFailure(cause.status >= 500 ? 'unreachable' : 'misconfigured', `${detail}: ${cause.status}`)
  return new SsoFailure('invalid', detail)
}

function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = []
  for (let one = error; one instanceof Error && causes.length < 8; one = one.cause) causes.push(one)
  return causes
}
