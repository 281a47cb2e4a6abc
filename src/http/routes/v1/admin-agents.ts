import { Type } from 'typebox'
import {
  Agent,
  AgentKey,
  ChangeAgent,
  ChangedAgent,
  CreateAgent,
  CreatedAgent,
  NameParam,
  PageQuery,
  RotateAgent,
  RotatedAgent,
} from '../../../api/admin.ts'
import { changeAgent } from '../../../core/agents/change-agent.ts'
import { type CreatedAgent as CreatedAgentView, createAgent } from '../../../core/agents/create-agent.ts'
import { deleteAgent } from '../../../core/agents/end-agent.ts'
import { type AgentView, listAgents, listSigningKeys, readAgent } from '../../../core/agents/list-agents.ts'
import type { OutOfScope } from '../../../core/agents/out-of-scope.ts'
import { rotateAgent } from '../../../core/agents/rotate-agent.ts'
import { scopeWarnings } from '../../../core/granting-backend.ts'
import { MAX_PAGE } from '../../../domain/limits.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optionalBody } from '../../server/validation.ts'
import { firstPage, pageLimit } from '../paging.ts'
import { optional, presentWarnings, timestamp, timestampOrNull } from '../wire.ts'

const tags = ['admin: agents']

export function adminAgentRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/agents', {
    schema: {
      summary: 'All agents, oldest first',
      tags,
      querystring: PageQuery,
      response: { 200: Type.Array(Agent) },
    },
    handle: async (call) => {
      const limit = pageLimit(call.query.limit)
      const views = await listAgents(core, call.query.cursor, limit + 1)
      return firstPage(call, views, limit, ({ id }) => id).map(present)
    },
  })

  addRoute(http, 'POST /v1/admin/agents', {
    schema: {
      summary: 'Create an agent; its secrets are shown here and never again',
      tags,
      body: CreateAgent,
      response: { 200: CreatedAgent },
    },
    handle: async ({ actor, body }) => {
      // First: nothing may fail once the secrets exist.
      const warnings = await scopeWarnings(core, body.scopes ?? [])
      return { ...presentSecrets(await createAgent(core, actor, body)), ...presentWarnings(warnings) }
    },
  })

  addRoute(http, 'GET /v1/admin/agents/:name', {
    schema: { summary: 'One agent', tags, params: NameParam, response: { 200: Agent } },
    handle: async ({ params }) => present(await readAgent(core, params.name)),
  })

  changeRoutes(http)

  addRoute(http, 'DELETE /v1/admin/agents/:name', {
    schema: {
      summary: 'Delete an agent; its token ends and its credentials are revoked',
      tags,
      params: NameParam,
      response: { 204: Type.Null() },
    },
    handle: async ({ actor, params, reply }) => {
      await deleteAgent(core, actor, params.name)
      return reply.code(204).send()
    },
  })

  addRoute(http, 'GET /v1/admin/keys', {
    schema: {
      summary: 'The public signing keys of all agents',
      tags: ['admin: keys'],
      querystring: PageQuery,
      response: { 200: Type.Array(AgentKey) },
    },
    handle: async (call) => {
      const limit = pageLimit(call.query.limit)
      const keys = await listSigningKeys(core, call.query.cursor, limit + 1)
      return firstPage(call, keys, limit, (key) => key.agentId).map(
        ({ keyId, agentId, name, email, publicKey, createdAt }) => ({
          key_id: keyId,
          agent_id: agentId,
          name,
          email,
          public_key: publicKey,
          created_at: timestamp(createdAt),
        }),
      )
    },
  })
}

function changeRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'PATCH /v1/admin/agents/:name', {
    schema: {
      summary: 'Change the scopes, expiry, audiences or description of an agent',
      description:
        'Removing and shortening take effect at once on all nodes. Nobody grants more than they hold.',
      tags,
      params: NameParam,
      body: ChangeAgent,
      response: { 200: ChangedAgent },
    },
    handle: async ({ actor, params, body }) => {
      const { view, warnings, outOfScope } = await changeAgent(core, actor, params.name, body)
      const more = outOfScope.length - MAX_PAGE
      const notes = more > 0 ? [`${more} more credentials than are listed are out of scope.`] : []
      return {
        ...present(view),
        ...presentWarnings([...warnings, ...notes]),
        ...(outOfScope.length === 0
          ? {}
          : { out_of_scope: outOfScope.slice(0, MAX_PAGE).map(presentBeyond) }),
      }
    },
  })

  addRoute(http, 'POST /v1/admin/agents/:name/rotate', {
    schema: {
      summary:
        'Replace the token and the client secret of an agent; the new ones are shown here and never again',
      description: 'Requires the scopes of the agent, because its new secrets can do what it can.',
      tags,
      params: NameParam,
      body: optionalBody(RotateAgent),
      response: { 200: RotatedAgent },
    },
    handle: async ({ actor, params, body }) => {
      const rotated = await rotateAgent(core, actor, params.name, body ?? {})
      return { ...presentSecrets(rotated), previous_valid_until: timestampOrNull(rotated.previousUntil) }
    },
  })
}

function presentSecrets({ agent, token, clientSecret }: CreatedAgentView) {
  return {
    id: agent.id,
    name: agent.name,
    token,
    scopes: agent.scopes,
    created_at: timestamp(agent.createdAt),
    expires_at: timestampOrNull(agent.expiresAt),
    oidc: { client_id: agent.clientId, client_secret: clientSecret },
    signing_key_id: agent.signingKeyId,
    signing_email: agent.signingEmail,
  }
}

function presentBeyond({ id, backend, scopes, expiresAt, isRevoked }: OutOfScope) {
  return {
    id,
    backend,
    scopes,
    expires_at: timestamp(expiresAt),
    status: isRevoked ? 'revoked' : 'active',
  }
}

function present(view: AgentView) {
  return {
    id: view.id,
    name: view.name,
    scopes: view.scopes,
    created_at: timestamp(view.createdAt),
    last_used: timestampOrNull(view.lastUsed),
    expires_at: timestampOrNull(view.expiresAt),
    policy: view.policy,
    ...(view.audiences.length === 0 ? {} : { audiences: [...view.audiences] }),
    ...optional('description', view.description),
    ...optional('previous_secrets_until', timestampOrNull(view.previousUntil)),
  }
}
