import { changeAgent } from '../../../core/agents/change-agent.ts'
import { type CreatedAgent as CreatedAgentView, createAgent } from '../../../core/agents/create-agent.ts'
import { deleteAgent } from '../../../core/agents/end-agent.ts'
import { type AgentView, listAgents, listSigningKeys, readAgent } from '../../../core/agents/list-agents.ts'
import type { OutOfScope } from '../../../core/agents/out-of-scope.ts'
import { rotateAgent } from '../../../core/agents/rotate-agent.ts'
import { scopeWarnings } from '../../../core/granting-backend.ts'
import { MAX_PAGE } from '../../../domain/limits.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { linked } from '../paging.ts'
import { optional, presentWarnings, timestamp, timestampOrNull } from '../wire.ts'

export function adminAgentRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/agents', async (call) => {
    return linked(call, await listAgents(core, call.query)).map(present)
  })

  addRoute(http, 'POST /v1/admin/agents', async ({ actor, body }) => {
    // First: nothing may fail once the secrets exist.
    const warnings = await scopeWarnings(core, body.scopes ?? [])
    return { ...presentSecrets(await createAgent(core, actor, body)), ...presentWarnings(warnings) }
  })

  addRoute(http, 'GET /v1/admin/agents/:name', async ({ params }) =>
    present(await readAgent(core, params.name)),
  )

  changeRoutes(http)

  addRoute(http, 'DELETE /v1/admin/agents/:name', async ({ actor, params }) => {
    await deleteAgent(core, actor, params.name)
  })

  addRoute(http, 'GET /v1/admin/keys', async (call) => {
    return linked(call, await listSigningKeys(core, call.query)).map(
      ({ keyId, agentId, name, email, publicKey, createdAt }) => ({
        key_id: keyId,
        agent_id: agentId,
        name,
        email,
        public_key: publicKey,
        created_at: timestamp(createdAt),
      }),
    )
  })
}

function changeRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'PATCH /v1/admin/agents/:name', async ({ actor, params, body }) => {
    const { view, warnings, outOfScope } = await changeAgent(core, actor, params.name, body)
    const more = outOfScope.length - MAX_PAGE
    const notes = more > 0 ? [`${more} more credentials than are listed are out of scope.`] : []
    return {
      ...present(view),
      ...presentWarnings([...warnings, ...notes]),
      ...(outOfScope.length === 0 ? {} : { out_of_scope: outOfScope.slice(0, MAX_PAGE).map(presentBeyond) }),
    }
  })

  addRoute(http, 'POST /v1/admin/agents/:name/rotate', async ({ actor, params, body }) => {
    const rotated = await rotateAgent(core, actor, params.name, body ?? {})
    return { ...presentSecrets(rotated), previous_valid_until: timestampOrNull(rotated.previousUntil) }
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
    owner: view.owner,
    live: view.live,
    last_used: timestampOrNull(view.lastUse?.at ?? null),
    last_used_from: view.lastUse?.from ?? null,
    expires_at: timestampOrNull(view.expiresAt),
    policy: view.policy,
    signing_key_id: view.signingKeyId,
    ...(view.identity === null ? {} : { identity: { ...view.identity, values: [...view.identity.values] } }),
    ...(view.audiences.length === 0 ? {} : { audiences: [...view.audiences] }),
    ...optional('description', view.description),
    ...optional('previous_secrets_until', timestampOrNull(view.previousUntil)),
  }
}
