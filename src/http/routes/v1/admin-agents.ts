import { Type } from 'typebox'
import { Agent, AgentKey, CreateAgent, CreatedAgent, NameParam, PageQuery } from '../../../api/admin.ts'
import { createAgent } from '../../../core/agents/create-agent.ts'
import { deleteAgent } from '../../../core/agents/end-agent.ts'
import { type AgentView, listAgents, listSigningKeys, readAgent } from '../../../core/agents/list-agents.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, pageLimit } from '../paging.ts'
import { timestamp, timestampOrNull } from '../wire.ts'

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
      const { agent, token, clientSecret } = await createAgent(core, actor, body)
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
    },
  })

  addRoute(http, 'GET /v1/admin/agents/:name', {
    schema: { summary: 'One agent', tags, params: NameParam, response: { 200: Agent } },
    handle: async ({ params }) => present(await readAgent(core, params.name)),
  })

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
  }
}
