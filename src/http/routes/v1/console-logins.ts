import { logOut } from '../../../core/sessions/end-session.ts'
import { logInByLink } from '../../../core/sessions/login-links.ts'
import { beginPasskeyLogin, logInByPasskey } from '../../../core/sessions/passkey-login.ts'
import { addPasskey, beginRegistration } from '../../../core/sessions/passkeys.ts'
import type { StartedSession } from '../../../core/sessions/start-session.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { clearCookie, requireOwnPage, setCookie } from '../../routing/session-request.ts'
import { timestamp } from '../wire.ts'
import { presentPasskey } from './present-people.ts'

export function consoleLoginRoutes(http: Http): void {
  const { core } = http
  const { relyingParty } = core.settings

  addRoute(http, 'POST /v1/console/login/link', async ({ actor, request, reply, body }) => {
    requireOwnPage(request)
    const followed = await logInByLink(core, body, actor.origin)
    if ('link' in followed) return { link: followed.link, expires_at: timestamp(followed.expiresAt) }
    setCookie(reply, relyingParty, followed.secret)
    return present(followed)
  })

  addRoute(http, 'POST /v1/console/login/options', async ({ actor, request }) => {
    requireOwnPage(request)
    return { options: beginPasskeyLogin(core, actor.origin) }
  })

  addRoute(http, 'POST /v1/console/login/passkey', async ({ actor, request, reply, body }) => {
    requireOwnPage(request)
    const started = await logInByPasskey(core, body.assertion, actor.origin)
    setCookie(reply, relyingParty, started.secret)
    return present(started)
  })

  addRoute(http, 'POST /v1/console/logout', async ({ actor, reply }) => {
    await logOut(core, actor)
    clearCookie(reply, relyingParty)
  })

  addRoute(http, 'POST /v1/console/passkeys/options', async ({ actor }) => ({
    options: await beginRegistration(core, actor),
  }))

  addRoute(http, 'POST /v1/console/passkeys', async ({ actor, body }) =>
    presentPasskey(await addPasskey(core, actor, body), relyingParty),
  )
}

const present = ({ key, session }: StartedSession) => ({ key, expires_at: timestamp(session.expiresAt) })
