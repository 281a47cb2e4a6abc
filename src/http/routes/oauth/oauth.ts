import type { FastifyRequest } from 'fastify'
import type { Actor } from '../../../core/caller.ts'
import { beginDeviceLogin } from '../../../core/command-logins/begin-device-login.ts'
import { redeemAuthorizationCode } from '../../../core/command-logins/redeem-authorization-code.ts'
import { redeemDeviceCode } from '../../../core/command-logins/redeem-device-code.ts'
import type { StartedCommand } from '../../../core/command-logins/start-command-session.ts'
import type { Core } from '../../../core/context.ts'
import { authenticateClient } from '../../../core/oauth/authenticate-client.ts'
import type { PresentedClient } from '../../../core/oauth/client-attempt.ts'
import {
  ACCESS_TOKEN,
  exchangeToken,
  JWT_BEARER,
  TOKEN_EXCHANGE,
} from '../../../core/oauth/exchange-token.ts'
import { introspectToken } from '../../../core/oauth/introspect-token.ts'
import { issueToken } from '../../../core/oauth/issue-token.ts'
import type { IssuedToken } from '../../../core/oauth/mint-token.ts'
import { revokeToken } from '../../../core/oauth/revoke-token.ts'
import { OAuthProblem } from '../../../domain/oauth-problem.ts'
import { Problem } from '../../../domain/problems.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { installFormBodies } from '../../server/bodies.ts'

/** The routes have a scope of their own for form bodies, and inherit everything else from the server. */
export function oauthRoutes(http: Http): void {
  http.server.register((scope, _options, done) => {
    installFormBodies(scope)
    // RFC 6749 §5.1 asks for it beside `Cache-Control: no-store`, which every reply has.
    scope.addHook('onRequest', (_request, reply, next) => {
      reply.header('pragma', 'no-cache')
      next()
    })
    addFormRoutes({ ...http, server: scope })
    done()
  })
}

function addFormRoutes(http: Http): void {
  const { core } = http

  const isOn = core.settings.operatorLogin === 'on'
  addRoute(http, 'POST /oauth/token', async (call) => {
    const { body, actor } = call
    const redeem = isOn ? redeemBy(body.grant_type) : undefined
    if (redeem !== undefined) {
      requireNoCredentials(call, 'This grant is only for the command of Mayfly.')
      return presentCommand(core, await redeem(core, body, actor.origin))
    }
    if (body.grant_type === TOKEN_EXCHANGE || body.grant_type === JWT_BEARER) {
      requireNoCredentials(call, 'This grant takes no client authentication; send none.')
      const exchanged = presentToken(await exchangeToken(core, body, actor.origin))
      return body.grant_type === JWT_BEARER ? exchanged : { ...exchanged, issued_token_type: ACCESS_TOKEN }
    }
    return presentToken(await issueToken(core, await clientOf(core, call), body))
  })

  addRoute(http, 'POST /oauth/device_authorization', async ({ body, actor }) => {
    if (!isOn) throw new Problem('not_found')
    const begun = await beginDeviceLogin(core, body, actor.origin)
    return {
      device_code: begun.deviceCode,
      user_code: begun.userCode,
      verification_uri: begun.verificationUri,
      expires_in: begun.expiresInMs / 1_000,
      interval: begun.intervalMs / 1_000,
    }
  })

  addRoute(http, 'POST /oauth/introspect', async (call) =>
    introspectToken(core, await clientOf(core, call), call.body.token),
  )

  addRoute(http, 'POST /oauth/revoke', async (call) => {
    await revokeToken(core, await clientOf(core, call), call.body.token)
    return {}
  })
}

/** How the command redeems its code; undefined for the grant of agents, and for one that nobody knows. */
function redeemBy(grant: string | undefined) {
  if (grant === 'authorization_code') return redeemAuthorizationCode
  return grant === 'urn:ietf:params:oauth:grant-type:device_code' ? redeemDeviceCode : undefined
}

/** A client that has credentials is an agent's (RFC 6749 §5.2: it is not authorized to use this grant). */
function requireNoCredentials({ body, request }: FormCall, message: string): void {
  const { client_secret, client_assertion } = body
  const credentials = [request.headers.authorization, client_secret, client_assertion]
  if (credentials.some((one) => one !== undefined)) throw new OAuthProblem('unauthorized_client', message)
}

function presentToken(issued: IssuedToken) {
  return {
    access_token: issued.accessToken,
    token_type: 'Bearer',
    expires_in: issued.expiresIn,
    scope: issued.scope,
    ...(issued.idToken === undefined ? {} : { id_token: issued.idToken }),
  }
}

/** Scopes of backends are those that the operator may grant: no token issues a credential by them. */
function presentCommand({ store }: Core, { token, session, caller }: StartedCommand) {
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: Math.floor((session.expiresAt - store.now()) / 1_000),
    scope: caller.scopes.join(' '),
  }
}

interface FormCall {
  readonly body: PresentedClient
  readonly actor: Pick<Actor<undefined>, 'origin'>
  readonly request: FastifyRequest
}

/** Field by field, because spreading a form, which has no prototype, is slow. */
function clientOf(core: Core, { body, actor, request }: FormCall) {
  const presented = {
    authorization: request.headers.authorization,
    client_id: body.client_id,
    client_secret: body.client_secret,
    client_assertion: body.client_assertion,
    client_assertion_type: body.client_assertion_type,
  }
  return authenticateClient(core, presented, actor.origin)
}
