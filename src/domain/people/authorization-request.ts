import { invalid } from '../problems.ts'
import { requireShownName } from './operator.ts'

const MAX_HOST = 255

/** The host that a command runs on, as it says: people read it before they allow anything. Throws `invalid_request`. */
export const requireHostName = (host: string): void => requireShownName(host, 'host', MAX_HOST)

/** The one client of the device grant and of the authorization code grant. It is public (RFC 6749 §2.1). */
export const COMMAND_CLIENT = 'mayfly-cli'

/** What a command asks for by a browser (RFC 6749 §4.1.1, RFC 7636 §4.3). */
export interface AuthorizationRequest {
  readonly redirectUri: string
  readonly codeChallenge: string
  readonly state: string
  /** The host that the command runs on, as it says. */
  readonly host: string
}

/**
 * The loopback of the machine that the browser runs on, at any port (RFC 8252 §7.3). Exactly this text: no name, which could
 * resolve elsewhere, no user information, no other path. Ports are checked by `isRedirectUri`.
 */
const REDIRECT = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):([1-9][0-9]{0,4})\/callback$/
const MAX_PORT = 65_535

export function isRedirectUri(text: string): boolean {
  const port = REDIRECT.exec(text)?.[1]
  return port !== undefined && Number(port) <= MAX_PORT
}

/** Base64url of a SHA-256 (RFC 7636 §4.2). */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/
/** RFC 6749, appendix A.5. */
const STATE = /^[\x20-\x7e]{1,512}$/

/** Reads the query of an authorization request, as it came. Throws `invalid_request`, which names the parameter. */
export function readAuthorizationRequest(query: string): AuthorizationRequest {
  const parameters = new URLSearchParams(query.replace(/^\?/, ''))
  const names = [...parameters.keys()]
  // RFC 6749 §3.1.
  if (new Set(names).size < names.length) throw wrong('a parameter comes twice')
  const value = (name: string) => parameters.get(name) ?? ''
  if (value('response_type') !== 'code') throw wrong('"response_type" must be code')
  if (value('client_id') !== COMMAND_CLIENT) throw wrong('"client_id" must be that of the command')
  if (!isRedirectUri(value('redirect_uri')))
    throw wrong('"redirect_uri" must be http://127.0.0.1:PORT/callback or http://[::1]:PORT/callback')
  if (value('code_challenge_method') !== 'S256') throw wrong('"code_challenge_method" must be S256')
  if (!CHALLENGE.test(value('code_challenge'))) throw wrong('"code_challenge" is missing, or no SHA-256')
  if (!STATE.test(value('state'))) throw wrong('"state" must have 1 to 512 ASCII characters')
  const host = value('host')
  requireHostName(host)
  return {
    redirectUri: value('redirect_uri'),
    codeChallenge: value('code_challenge'),
    state: value('state'),
    host,
  }
}

const wrong = (what: string) =>
  invalid(`This is no login that the command began: ${what}. Run mayfly login again.`)
