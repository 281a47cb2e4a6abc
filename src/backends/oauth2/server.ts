import { BackendError, type Fault, misconfigured, unavailable } from '../../domain/backend-error.ts'
import type { JsonObject } from '../../domain/formats/json.ts'
import { callJson, detailOf, type JsonReply } from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'
import { prepareLogin } from './login.ts'

const NAME = 'The authorization server'

export interface Token {
  readonly accessToken: string
  /** Epoch ms, where the server says it. */
  readonly expiresAt: number | undefined
  /** The granted scopes, if they are not the requested ones. */
  readonly scope: string | undefined
  readonly refreshToken: string | undefined
}

export interface Server {
  /** One request to the token endpoint. Throws `BackendError`. */
  token(form: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Token>
  /** RFC 7009: a token that the server does not know counts as revoked. Throws `BackendError`. */
  revoke(token: string, signal: AbortSignal): Promise<void>
}

export async function createServer(settings: Config, host: Host): Promise<Server> {
  const login = await prepareLogin(settings, host)
  const way = { local: settings.local, ...(settings.ca === undefined ? {} : { ca: settings.ca }) }

  async function post(url: string, form: Readonly<Record<string, string>>, signal: AbortSignal) {
    const { headers, form: mine } = await login()
    const call = { method: 'POST', headers, form: { ...form, ...mine }, signal } as const
    const reply = await callJson(host, NAME, url, call, way)
    if (reply.status >= 300 || isRefusal(reply)) throw failureOf(reply)
    return reply
  }

  return {
    async token(form, signal = new AbortController().signal) {
      // Counted from before the request, so that a token is never said to live longer than it does.
      const asked = host.now()
      const reply = await post(settings.token_endpoint, form, signal)
      return readToken(reply.body, asked)
    },
    async revoke(token, signal) {
      const url = settings.revocation_endpoint
      if (url === undefined) throw misconfigured('"revocation_endpoint" is missing.')
      const reply = await post(url, { token, token_type_hint: 'access_token' }, signal)
      // RFC 7009 §2.2: 200. Another success, such as 202, does not say that the token has ended.
      if (reply.status !== 200 && reply.status !== 204) {
        throw unavailable('The revocation endpoint did not say that the token has ended.')
      }
    },
  }
}

/** GitHub and Slack send errors with the status 200. */
function isRefusal({ body }: JsonReply): boolean {
  return typeof body?.['error'] === 'string' && body['access_token'] === undefined
}

const NOT_UNDERSTOOD =
  'The reply of the authorization server is not a token response (RFC 6749, section 5.1).'

/** Slack names the kind of its bearer tokens ("oauth.v2.access"). */
const BEARER = new Set(['bearer', 'bot'])

/** RFC 6749 §5.1, RFC 8693 §2.2.1. */
function readToken(reply: JsonObject | undefined, asked: number): Token {
  const unreadable = () => unavailable(NOT_UNDERSTOOD)
  const { access_token: accessToken, token_type: type, expires_in: given, scope, refresh_token } = reply ?? {}
  if (typeof accessToken !== 'string' || !/^[\x21-\x7e]{1,16384}$/.test(accessToken)) throw unreadable()
  if (typeof type !== 'string') throw unreadable()
  if (!BEARER.has(type.toLowerCase())) {
    throw unavailable('The authorization server issued a token that is not a bearer token.')
  }
  // Some servers send a number as text.
  const seconds = typeof given === 'string' && /^\d{1,10}$/.test(given) ? Number(given) : given
  if (seconds !== undefined && !(typeof seconds === 'number' && seconds > 0)) throw unreadable()
  if (scope !== undefined && typeof scope !== 'string') throw unreadable()
  if (refresh_token !== undefined && typeof refresh_token !== 'string') throw unreadable()
  return {
    accessToken,
    expiresAt: seconds === undefined ? undefined : asked + Math.floor(seconds) * 1000,
    scope,
    refreshToken: refresh_token,
  }
}

/** RFC 6749 §5.2, RFC 7009 §2.2.1, RFC 8693 §2.2.2. After each of them no token was issued. */
const ERRORS: Readonly<Record<string, readonly [Fault, string]>> = {
  invalid_client: ['denied', "The authorization server refused the login of Mayfly's client."],
  invalid_grant: [
    'denied',
    'The authorization server no longer accepts the refresh token or the token to exchange: sign in again, and configure the new one.',
  ],
  unauthorized_client: ['denied', "Mayfly's client may not use this grant."],
  unsupported_grant_type: ['misconfigured', 'The authorization server does not know this grant.'],
  invalid_scope: ['unsupported', "The authorization server does not give these scopes to Mayfly's client."],
  invalid_target: ['misconfigured', 'The authorization server refused "audience" or "resource".'],
  invalid_request: ['misconfigured', 'The authorization server found the request invalid; see the log.'],
  unsupported_token_type: [
    'misconfigured',
    'The authorization server cannot revoke such tokens; use the kind oauth2.',
  ],
  server_error: ['unavailable', 'The authorization server failed.'],
  temporarily_unavailable: ['unavailable', 'The authorization server cannot take requests at this time.'],
}

/** Names of GitHub ("Troubleshooting OAuth app access token request errors", "Refreshing user access tokens") and of Slack. */
const ALIASES: Readonly<Record<string, string>> = {
  incorrect_client_credentials: 'invalid_client',
  invalid_client_id: 'invalid_client',
  bad_client_secret: 'invalid_client',
  bad_refresh_token: 'invalid_grant',
  invalid_refresh_token: 'invalid_grant',
}

function failureOf(reply: JsonReply): BackendError {
  const { status, body } = reply
  const said = String(body?.['error'])
  const code = (Object.hasOwn(ALIASES, said) && ALIASES[said]) || said
  const [fault, message] = (Object.hasOwn(ERRORS, code) && ERRORS[code]) || [
    status < 300 || status === 401 || status === 403 ? 'denied' : 'misconfigured',
    `The authorization server refused the request (${status}).`,
  ]
  return new BackendError(fault, message, {
    detail: detailOf(reply),
    cause: code,
    login: code === 'invalid_client',
  })
}
