import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { IntrospectForm, IntrospectReply, RevokeForm, TokenForm, TokenReply } from '../../../api/oauth.ts'
import { authenticateClient, type OAuthCore } from '../../../core/oauth/authenticate-client.ts'
import type { PresentedClient } from '../../../core/oauth/client-attempt.ts'
import { createClients } from '../../../core/oauth/clients.ts'
import { introspectToken } from '../../../core/oauth/introspect-token.ts'
import { issueToken } from '../../../core/oauth/issue-token.ts'
import { OAuthRefusal } from '../../../core/oauth/oauth-refusal.ts'
import { revokeToken } from '../../../core/oauth/revoke-token.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { installFormBodies } from '../../server/bodies.ts'
import { OAuthProblem } from '../../server/oauth-problem.ts'

const FORM_MEDIA = 'application/x-www-form-urlencoded'
const shared = { tags: ['oauth'], consumes: [FORM_MEDIA] } as const

/** Form bodies live in a scope of their own; everything else of the server is inherited. */
export function oauthRoutes(http: Http): void {
  const core: OAuthCore = { ...http.core, clients: createClients(http.core) }
  http.server.register((scope, _options, done) => {
    installFormBodies(scope as unknown as FastifyInstance)
    // RFC 6749 §5.1 asks for it beside `Cache-Control: no-store`, which every reply has.
    scope.addHook('onRequest', (_request, reply, next) => {
      reply.header('pragma', 'no-cache')
      next()
    })
    const inScope = { ...http, server: scope }
    addTokenRoute(inScope, core)
    addIntrospectRoute(inScope, core)
    addRevokeRoute(inScope, core)
    done()
  })
}

function addTokenRoute(http: Http, core: OAuthCore): void {
  addRoute(http, 'POST /oauth/token', {
    schema: {
      ...shared,
      summary: 'Get an access token for client credentials',
      body: TokenForm,
      response: { 200: TokenReply },
    },
    handle: ({ body, origin, request }) =>
      inOAuthTerms(async () => {
        const who = await authenticateClient(core, presented(body, request.headers.authorization), origin)
        const issued = await issueToken(core, who, body, origin)
        return {
          access_token: issued.accessToken,
          token_type: 'Bearer',
          expires_in: issued.expiresIn,
          scope: issued.scope,
          ...(issued.idToken === undefined ? {} : { id_token: issued.idToken }),
        }
      }),
  })
}

function addIntrospectRoute(http: Http, core: OAuthCore): void {
  addRoute(http, 'POST /oauth/introspect', {
    schema: {
      ...shared,
      summary: 'Ask whether a token is good',
      body: IntrospectForm,
      response: { 200: IntrospectReply },
    },
    handle: ({ body, origin, request }) =>
      inOAuthTerms(async () => {
        const who = await authenticateClient(core, presented(body, request.headers.authorization), origin)
        return introspectToken(core, who, body.token, origin)
      }),
  })
}

function addRevokeRoute(http: Http, core: OAuthCore): void {
  addRoute(http, 'POST /oauth/revoke', {
    schema: {
      ...shared,
      summary: 'End a token before its time',
      body: RevokeForm,
      response: { 200: Type.Object({}, { additionalProperties: false }) },
    },
    handle: ({ body, origin, request }) =>
      inOAuthTerms(async () => {
        const who = await authenticateClient(core, presented(body, request.headers.authorization), origin)
        await revokeToken(core, who, body.token, origin)
        return {}
      }),
  })
}

/** Field by field: copying a form, which has no prototype, whole is slow. */
function presented(body: PresentedClient, authorization: string | undefined): PresentedClient {
  return {
    authorization,
    client_id: body.client_id,
    client_secret: body.client_secret,
    client_assertion: body.client_assertion,
    client_assertion_type: body.client_assertion_type,
  }
}

async function inOAuthTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof OAuthRefusal) throw new OAuthProblem(cause.code, cause.message, { cause })
    throw cause
  }
}
