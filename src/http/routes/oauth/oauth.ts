import type { FastifyRequest } from 'fastify'
import type { Actor } from '../../../core/caller.ts'
import type { Core } from '../../../core/context.ts'
import { authenticateClient } from '../../../core/oauth/authenticate-client.ts'
import type { PresentedClient } from '../../../core/oauth/client-attempt.ts'
import { introspectToken } from '../../../core/oauth/introspect-token.ts'
import { issueToken } from '../../../core/oauth/issue-token.ts'
import { revokeToken } from '../../../core/oauth/revoke-token.ts'
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

  addRoute(http, 'POST /oauth/token', async (call) => {
    const issued = await issueToken(core, await clientOf(core, call), call.body)
    return {
      access_token: issued.accessToken,
      token_type: 'Bearer',
      expires_in: issued.expiresIn,
      scope: issued.scope,
      ...(issued.idToken === undefined ? {} : { id_token: issued.idToken }),
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
