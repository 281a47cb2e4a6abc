import { BackendCredential, BackendName, IssueBody, IssueQuery } from '../../../api/v1.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { Problem } from '../../../domain/problems.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optionalBody } from '../../server/validation.ts'
import { type Asked, issueToCaller } from '../issue-to-caller.ts'
import { optional, timestamp } from '../wire.ts'

const tags = ['credentials']

/** The same operation by POST and by GET (decisions.md §4.3). */
export function backendCredentialRoutes(http: Http, options: { issueByGet: boolean }): void {
  addRoute(http, 'POST /v1/credentials/:backend', {
    schema: {
      summary: 'Issue a credential of this backend',
      tags,
      params: BackendName,
      body: optionalBody(IssueBody),
      response: { 200: BackendCredential },
    },
    handle: (call) => issue(http, call, { backend: call.params.backend, ...call.body }),
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
      return issue(http, call, {
        backend: call.params.backend,
        ttl,
        scopes: scope,
        params: Object.keys(params).length > 0 ? params : undefined,
      })
    },
  })
}

async function issue({ core }: Http, call: Asked, command: Parameters<typeof issueToCaller>[2]) {
  const issued = await issueToCaller(core, call, command)
  return {
    token: issued.token,
    expires_at: timestamp(issued.expiresAt),
    id: issued.id,
    ttl: formatDuration(issued.ttlMs),
    fields: issued.fields,
    left_out: issued.leftOut.length === 0 ? undefined : issued.leftOut,
  }
}
