import { BackendCredential, BackendName, IssueBody, IssueQuery } from '../../api/v1.ts'
import type { AgentCaller } from '../../core/context.ts'
import { issueCredential } from '../../core/issue-credential.ts'
import { revokeUndelivered } from '../../core/revoke-credential.ts'
import { Problem } from '../../domain/problems.ts'
import { requireMetadata } from '../metadata.ts'
import { addRoute, type Call, type Http, type RouteSchema } from '../route.ts'
import type { RouteName } from '../route-table.ts'
import { optionalBody } from '../validation.ts'
import { optional, timestamp } from '../wire.ts'

const tags = ['credentials']

/** The same operation by POST and by GET (decisions §4.3). */
export function backendCredentialRoutes(http: Http, options: { issueByGet: boolean }): void {
  addRoute(http, 'POST /v1/credentials/:backend', {
    schema: {
      summary: 'Issue a credential of this backend',
      tags,
      params: BackendName,
      body: optionalBody(IssueBody),
      response: { 200: BackendCredential },
    },
    handle: (call) => {
      requireMetadata(call.body?.metadata)
      return issue(http, call.caller, { backend: call.params.backend, ...call.body }, call)
    },
  })

  addRoute(http, 'GET /v1/credentials/:backend', {
    schema: {
      summary: 'Issue a credential of this backend',
      tags,
      params: BackendName,
      querystring: IssueQuery,
      response: { 200: BackendCredential },
    },
    handle: (call) => {
      if (!options.issueByGet) {
        call.reply.header('allow', 'POST')
        throw new Problem('method_not_allowed', { message: 'Issuing by GET is switched off here; use POST.' })
      }
      const { ttl, scope, repo, read_only } = call.query
      const params = { ...optional('repos', repo), ...optional('read_only', read_only) }
      return issue(
        http,
        call.caller,
        {
          backend: call.params.backend,
          ttl,
          scopes: scope,
          params: Object.keys(params).length > 0 ? params : undefined,
        },
        call,
      )
    },
  })
}

type Command = Parameters<typeof issueCredential>[2]

async function issue(
  http: Http,
  caller: AgentCaller,
  command: Command,
  call: Pick<Call<RouteName, RouteSchema>, 'request' | 'origin'>,
) {
  const idempotencyKey = call.request.headers['idempotency-key'] as string | undefined
  const issued = await issueCredential(http.core, caller, { ...command, idempotencyKey }, call.origin)
  if (call.request.raw.socket.destroyed) void revokeUndelivered(http.core, caller, issued, call.origin)
  return {
    token: issued.token,
    expires_at: timestamp(issued.expiresAt),
    id: issued.id,
    ttl: issued.ttl,
    fields: issued.fields,
  }
}
