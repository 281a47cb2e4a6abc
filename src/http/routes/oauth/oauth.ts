import type { FastifyInstance } from 'fastify'
import {
  IntrospectForm,
  IntrospectReply,
  RevokeForm,
  RevokeReply,
  TokenForm,
  TokenReply,
} from '../../../api/oauth.ts'
import { authenticateClient } from '../../../core/oauth/authenticate-client.ts'
import type { PresentedClient } from '../../../core/oauth/client-attempt.ts'
import { introspectToken } from '../../../core/oauth/introspect-token.ts'
import { issueToken } from '../../../core/oauth/issue-token.ts'
import { revokeToken } from '../../../core/oauth/revoke-token.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { installFormBodies } from '../../server/bodies.ts'

const FORM_MEDIA = 'application/x-www-form-urlencoded'
const shared = { tags: ['oauth'], consumes: [FORM_MEDIA] } as const

/** The routes have a scope of their own for form bodies, and inherit everything else from the server. */
export function oauthRoutes(http: Http): void {
  http.server.register((scope, _options, done) => {
    installFormBodies(scope as unknown as FastifyInstance)
    // RFC 6749 §5.1 asks for it beside `Cache-Control: no-store`, which every reply has.
    scope.addHook('onRequest', (_request, reply, next) => {
      reply.header('pragma', 'no-cache')
      next()
    })
    const inScope = { ...http, server: scope }
    addTokenRoute(inScope)
    addIntrospectRoute(inScope)
    addRevokeRoute(inScope)
    done()
  })
}

function addTokenRoute(http: Http): void {
  const { core } = http
  addRoute(http, 'POST /oauth/token', {
    schema: {
      ...shared,
      summary: 'Get an access token for client credentials',
      body: TokenForm,
      response: { 200: TokenReply },
    },
    handle: async ({ body, actor: { origin }, request }) => {
      const who = await authenticateClient(core, presented(body, request.headers.authorization), origin)
      const issued = await issueToken(core, who, body)
      return {
        access_token: issued.accessToken,
        token_type: 'Bearer',
        expires_in: issued.expiresIn,
        scope: issued.scope,
        ...(issued.idToken === undefined ? {} : { id_token: issued.idToken }),
      }
    },
  })
}

function addIntrospectRoute(http: Http): void {
  const { core } = http
  addRoute(http, 'POST /oauth/introspect', {
    schema: {
      ...shared,
      summary: 'Check whether a token is active',
      body: IntrospectForm,
      response: { 200: IntrospectReply },
    },
    handle: async ({ body, actor: { origin }, request }) => {
      const who = await authenticateClient(core, presented(body, request.headers.authorization), origin)
      return introspectToken(core, who, body.token)
    },
  })
}

function addRevokeRoute(http: Http): void {
  const { core } = http
  addRoute(http, 'POST /oauth/revoke', {
    schema: {
      ...shared,
      summary: 'Revoke a token',
      body: RevokeForm,
      response: { 200: RevokeReply },
    },
    handle: async ({ body, actor: { origin }, request }) => {
      const who = await authenticateClient(core, presented(body, request.headers.authorization), origin)
      await revokeToken(core, who, body.token)
      return {}
    },
  })
}

/** Field by field, because spreading a form, which has no prototype, is slow. */
function presented(body: PresentedClient, authorization: string | undefined): PresentedClient {
  return {
    authorization,
    client_id: body.client_id,
    client_secret: body.client_secret,
    client_assertion: body.client_assertion,
    client_assertion_type: body.client_assertion_type,
  }
}
