import type { FastifyReply } from 'fastify'
import {
  beginSsoConfirmation,
  beginSsoLogin,
  finishSso,
  loginWays,
} from '../../../core/sessions/sso-login.ts'
import { SSO_STATE_MS } from '../../../domain/limits.ts'
import type { RelyingParty } from '../../../domain/people/relying-party.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { readCookie, requireOwnPage, setCookie } from '../../routing/session-request.ts'
import { timestamp } from '../wire.ts'

const STATE = 'mayfly-sso-state'

export function ssoLoginRoutes(http: Http): void {
  const { core } = http
  const { relyingParty } = core.settings

  addRoute(http, 'GET /v1/console/login', async ({ actor }) => ({
    sso: loginWays(core, actor.origin).map((name) => ({ name })),
  }))

  addRoute(http, 'POST /v1/console/login/sso', async ({ actor, request, reply, body }) => {
    requireOwnPage(request)
    const { url, cookie } = await beginSsoLogin(core, body.provider, actor.origin)
    setState(reply, relyingParty, cookie, SSO_STATE_MS / 1_000)
    return { url }
  })

  addRoute(http, 'POST /v1/console/login/sso/finish', async ({ actor, request, reply, body }) => {
    requireOwnPage(request)
    const cookie = readCookie(request.headers.cookie, STATE)
    setState(reply, relyingParty, '', 0)
    const finished = await finishSso(core, { cookie, parameters: body.parameters }, actor.origin)
    if ('confirmed' in finished) return finished
    setCookie(reply, relyingParty, finished.secret)
    return { key: finished.key, expires_at: timestamp(finished.session.expiresAt) }
  })

  addRoute(http, 'POST /v1/console/confirm/sso', async ({ actor, reply, body }) => {
    const { url, cookie } = await beginSsoConfirmation(core, actor, body.challenge)
    setState(reply, relyingParty, cookie, SSO_STATE_MS / 1_000)
    return { url }
  })
}

/** The browser comes back from another site; what it then sends comes from our own page again. */
function setState(reply: FastifyReply, { isSecure }: RelyingParty, value: string, seconds: number): void {
  const secure = isSecure ? '; Secure' : ''
  reply.header('set-cookie', `${STATE}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`)
}
