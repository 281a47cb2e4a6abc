import { queryAudit } from '../../../core/audit/query-audit.ts'
import { listCredentials } from '../../../core/credentials/list-credentials.ts'
import {
  type CredentialView,
  type Ending,
  readCredential,
} from '../../../core/credentials/read-credential.ts'
import { revokeAll } from '../../../core/credentials/revoke-all.ts'
import { revokeCredential } from '../../../core/credentials/revoke-credential.ts'
import type { Status } from '../../../domain/credential.ts'
import { invalid } from '../../../domain/problems.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { linked } from '../paging.ts'
import { presentEntry } from '../present-audit.ts'
import { optional, timestamp, timestampOrNull } from '../wire.ts'

/** The credentials of all agents, and the whole audit. */
export function adminTokenRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/tokens', async ({ query, request, reply }) => {
    const status = query.status as Status | undefined
    const page = await listCredentials(core, { ...query, status })
    return linked({ request, reply }, page).map(present)
  })

  addRoute(http, 'GET /v1/admin/tokens/:id', async ({ rule, actor, params }) =>
    present(await readCredential(core, actor.caller, params.id, rule.scope)),
  )

  addRoute(http, 'POST /v1/admin/tokens/revoke', ({ actor, body }) => revokeAll(core, actor, body))

  addRoute(http, 'DELETE /v1/admin/tokens/:id', async ({ rule, actor, params }) => {
    await revokeCredential(core, actor, params.id, rule.scope)
  })

  addRoute(http, 'GET /v1/admin/audit', async ({ actor, query: { agent_id, ...query }, request, reply }) => {
    if (agent_id !== undefined && query.agent !== undefined)
      throw invalid('"agent" and "agent_id" are the same filter: give one of them.')
    const page = await queryAudit(core, actor.caller, { ...query, agent: agent_id ?? query.agent })
    return linked({ request, reply }, page).map(presentEntry)
  })
}

function present(view: CredentialView) {
  return {
    id: view.id,
    agent_id: view.agentId,
    agent_name: view.agentName,
    backend: view.backend,
    ...optional('run', view.runId),
    scopes: view.scopes,
    status: view.status,
    ...optional('upstream', view.upstream),
    expires_at: timestamp(view.expiresAt),
    created_at: timestamp(view.createdAt),
    ...optional('ended_at', timestampOrNull(view.endedAt)),
    ...optional('end_reason', view.endReason),
    ...(view.ending === undefined ? {} : presentEnding(view.ending)),
  }
}

function presentEnding({ attempts, nextTry, isStuck, failure }: Ending) {
  return {
    ...optional('attempts', attempts === 0 ? undefined : attempts),
    ...optional('next_try', timestampOrNull(nextTry)),
    ...optional('stuck', isStuck ? true : undefined),
    ...optional('failure', failure),
  }
}
