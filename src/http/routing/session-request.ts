import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Actor, OperatorCaller } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import { authenticateSession } from '../../core/sessions/authenticate-session.ts'
import { confirmRequest } from '../../core/sessions/confirm-request.ts'
import { SESSION_MS } from '../../domain/limits.ts'
import type { RelyingParty } from '../../domain/people/relying-party.ts'
import { Problem } from '../../domain/problems.ts'
import { originOf } from './origin.ts'

/** The key of the page: no form can send it, and no page of another port of this host has it. */
const KEY_HEADER = 'mayfly-console'
const CONFIRMATION_HEADER = 'mayfly-confirmation'

/** Whether the request means a session. It then never counts as anything else. */
export function namesSession({ headers }: FastifyRequest): boolean {
  return headers[KEY_HEADER] !== undefined
}

/** The operator whose page sent this. Throws `unauthorized`. */
export async function sessionActor(core: Core, request: FastifyRequest): Promise<Actor<OperatorCaller>> {
  const { headers } = request
  if (core.settings.console === 'off')
    throw new Problem('unauthorized', { message: 'This server has no console, and takes no sessions.' })
  const key = headers[KEY_HEADER]
  if (typeof key !== 'string' || !isSameOrigin(headers))
    throw new Problem('unauthorized', {
      message: 'Log in at the console of this server, and call from its page.',
      invalidToken: headers.authorization !== undefined,
    })
  const secret = readCookie(headers.cookie, cookieName(core.settings.relyingParty))
  return authenticateSession(core, { secret, key }, originOf(request))
}

/** Whether a page of this server that has a session navigates there: then the browser sends no header of the page. */
export function isNavigation({ settings }: Core, { headers }: FastifyRequest): boolean {
  return isSameOrigin(headers) && readCookie(headers.cookie, cookieName(settings.relyingParty)) !== undefined
}

/** The operator of this cookie, for a route where that is enough (`RouteRule.byCookie`). Throws `unauthorized`. */
export function cookieActor(core: Core, request: FastifyRequest): Promise<Actor<OperatorCaller>> {
  const secret = readCookie(request.headers.cookie, cookieName(core.settings.relyingParty))
  return authenticateSession(core, { secret, key: undefined }, originOf(request))
}

/** With what the request asks for, and its confirmation. Throws `confirmation_required` and `rate_limited`. */
export function confirmed(
  core: Core,
  request: FastifyRequest,
  actor: Actor<OperatorCaller>,
): Promise<Actor<OperatorCaller>> {
  const asked = { method: request.method, path: request.raw.url ?? '', body: request.body ?? null }
  const header = request.headers[CONFIRMATION_HEADER]
  return confirmRequest(core, actor, asked, header === undefined ? undefined : String(header))
}

/** For the routes where people log in. Throws `not_allowed` for a page of another origin, or of no browser. */
export function requireOwnPage({ headers }: FastifyRequest): void {
  if (!isSameOrigin(headers))
    throw new Problem('not_allowed', { message: 'Only the page of the console may do this: open /console.' })
}

/** Browsers set it, and no page can change it (Fetch Metadata, §2.2). */
const isSameOrigin = (headers: IncomingHttpHeaders) => headers['sec-fetch-site'] === 'same-origin'

/** Cookies with the prefix come only from this host, over TLS, for all of its paths (RFC 6265bis §4.1.3.2). */
const cookieName = ({ isSecure }: RelyingParty) => (isSecure ? '__Host-mayfly' : 'mayfly')

/** Undefined where there is none, or more than one: another page of this host may have set the other. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const values = (header ?? '').split(';').flatMap((pair) => {
    const equals = pair.indexOf('=')
    return pair.slice(0, equals).trim() === name ? [pair.slice(equals + 1).trim()] : []
  })
  return values.length === 1 ? values[0] : undefined
}

export function setCookie(reply: FastifyReply, party: RelyingParty, secret: string): void {
  reply.header('set-cookie', cookieOf(party, secret, SESSION_MS / 1_000))
}

/** Not by `Clear-Site-Data`, which would also take the cookies of the other hosts of the registrable domain. */
export function clearCookie(reply: FastifyReply, party: RelyingParty): void {
  reply.header('set-cookie', cookieOf(party, '', 0)).header('clear-site-data', '"cache", "storage"')
}

function cookieOf(party: RelyingParty, value: string, seconds: number): string {
  const secure = party.isSecure ? '; Secure' : ''
  return `${cookieName(party)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}
