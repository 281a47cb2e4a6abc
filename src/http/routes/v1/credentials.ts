import type { Static } from 'typebox'
import type { IssueQuery } from '../../../api/v1.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { invalid, Problem } from '../../../domain/problems.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { type Asked, issueToCaller } from '../issue-to-caller.ts'
import { presentUse } from '../present-uses.ts'
import { timestamp } from '../wire.ts'

/** The same operation by POST and by GET (decisions.md §4.3). */
export function backendCredentialRoutes(http: Http, options: { issueByGet: boolean }): void {
  addRoute(http, 'POST /v1/credentials/:backend', (call) => {
    const { body, query, params } = call
    if (body !== undefined && Object.keys(query).length > 0)
      throw invalid('Send the options in the body or in the query, not in both.')
    return issue(http, call, { backend: params.backend, ...(body ?? commandOf(query)) })
  })

  addRoute(http, 'GET /v1/credentials/:backend', (call) => {
    if (!options.issueByGet) {
      call.reply.header('allow', 'POST')
      throw new Problem('method_not_allowed', { message: 'Issuing by GET is switched off here; use POST.' })
    }
    return issue(http, call, { backend: call.params.backend, ...commandOf(call.query) })
  })
}

function commandOf({ ttl, scope, repo, read_only, run }: Static<typeof IssueQuery>) {
  const narrow = repo === undefined && read_only === undefined ? undefined : { repo, read_only }
  return { ttl, scopes: scope, narrow, run }
}

async function issue({ core }: Http, call: Asked, command: Parameters<typeof issueToCaller>[2]) {
  const issued = await issueToCaller(core, call, command)
  return {
    token: issued.secret,
    expires_at: timestamp(issued.expiresAt),
    id: issued.id,
    ttl: formatDuration(issued.ttlMs),
    fields: issued.fields,
    left_out: issued.leftOut.length === 0 ? undefined : issued.leftOut,
    uses: issued.uses?.map(presentUse),
  }
}
