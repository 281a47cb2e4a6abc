import {
  type AskingCommand,
  allowCommandLogin,
  denyCommandLogin,
  lookAtCommandLogin,
} from '../../../core/command-logins/decide-command-login.ts'
import { Problem } from '../../../domain/problems.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { timestamp } from '../wire.ts'

export function consoleCommandRoutes(http: Http): void {
  const { core } = http
  const requireOn = () => {
    if (core.settings.operatorLogin === 'off')
      throw new Problem('not_found', {
        message: 'No command logs in as an operator here: the setting operator_login is off.',
      })
  }

  addRoute(http, 'POST /v1/console/commands/look', async ({ actor, body }) => {
    requireOn()
    return present(await lookAtCommandLogin(core, actor, body))
  })

  addRoute(http, 'POST /v1/console/commands/allow', async ({ actor, body }) => {
    requireOn()
    return decided(await allowCommandLogin(core, actor, body))
  })

  addRoute(http, 'POST /v1/console/commands/deny', async ({ actor, body }) => {
    requireOn()
    return decided(await denyCommandLogin(core, actor, body))
  })
}

const decided = (redirectTo: string | undefined) =>
  redirectTo === undefined ? {} : { redirect_to: redirectTo }

function present(asking: AskingCommand) {
  if (asking.kind === 'browser') {
    const { host, redirectUri } = asking.request
    const unknown = { ip_address: null, user_agent: null, requested_at: null, expires_at: null }
    return { kind: 'browser', host, redirect_uri: redirectUri, ...unknown }
  }
  const { host, ipAddress, userAgent, createdAt, expiresAt } = asking.login
  return {
    kind: 'device',
    host,
    ip_address: ipAddress,
    user_agent: userAgent,
    redirect_uri: null,
    requested_at: timestamp(createdAt),
    expires_at: timestamp(expiresAt),
  }
}
