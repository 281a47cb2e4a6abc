import { Type } from 'typebox'
import { Token, TokenQuery } from '../../../api/admin.ts'
import { AuditEntry, AuditQuery, CredentialId } from '../../../api/api-v1.ts'
import { EXAMPLE_ID, Page } from '../../../api/shared.ts'
import { queryAudit } from '../../../core/audit/query-audit.ts'
import { listCredentials } from '../../../core/credentials/list-credentials.ts'
import { revokeCredential } from '../../../core/credentials/revoke-credential.ts'
import type { Status } from '../../../domain/credential.ts'
import { invalid } from '../../../domain/problems.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { linkNext, pageLimit } from '../paging.ts'
import { presentEntry } from '../present-audit.ts'
import { optional, timestamp } from '../wire.ts'

const AgentId = Type.String({
  maxLength: 64,
  description: 'The same filter as `agent`; give one of them.',
  examples: [EXAMPLE_ID.agent],
})

/** The credentials of all agents, and the whole audit. */
export function adminTokenRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/tokens', {
    schema: {
      summary: 'Credentials of all agents, newest first',
      tags: ['admin: tokens'],
      querystring: TokenQuery,
      response: { 200: Type.Array(Token) },
    },
    handle: async ({ query, request, reply }) => {
      const status = query.status as Status | undefined
      const { views, nextCursor } = await listCredentials(core, {
        ...query,
        status,
        limit: pageLimit(query.limit),
      })
      linkNext(reply, request, nextCursor)
      return views.map((view) => ({
        id: view.id,
        agent_id: view.agentId,
        agent_name: view.agentName,
        backend: view.backend,
        scopes: view.scopes,
        status: view.status,
        ...optional('upstream', view.upstream),
        expires_at: timestamp(view.expiresAt),
        created_at: timestamp(view.createdAt),
      }))
    },
  })

  addRoute(http, 'DELETE /v1/admin/tokens/:id', {
    schema: {
      summary: 'Revoke a credential of any agent',
      tags: ['admin: tokens'],
      params: CredentialId,
      response: { 204: Type.Null() },
    },
    handle: async ({ rule, actor, params, reply }) => {
      await revokeCredential(core, actor, params.id, rule.scope)
      return reply.code(204).send()
    },
  })

  addRoute(http, 'GET /v1/admin/audit', {
    schema: {
      summary: 'The whole audit, newest first',
      tags: ['audit'],
      querystring: Type.Object(
        { ...AuditQuery, agent_id: Type.Optional(AgentId), ...Page },
        { additionalProperties: false },
      ),
      response: { 200: Type.Array(AuditEntry) },
    },
    handle: async ({ actor, query: { agent_id, ...query }, request, reply }) => {
      if (agent_id !== undefined && query.agent !== undefined)
        throw invalid('"agent" and "agent_id" are the same filter: give one of them.')
      const page = await queryAudit(core, actor.caller, { ...query, agent: agent_id ?? query.agent })
      linkNext(reply, request, page.nextCursor)
      return page.entries.map(presentEntry)
    },
  })
}
