import { Type } from 'typebox'
import { PageQuery } from '../../../api/admin.ts'
import { CredentialId } from '../../../api/api-v1.ts'
import { ActiveCredential, AgentStatus, SigningKey, SigningKeyQuery } from '../../../api/v1.ts'
import { agentStatus, listActive } from '../../../core/agents/agent-status.ts'
import { deleteSelf } from '../../../core/agents/end-agent.ts'
import { readSigningKey } from '../../../core/agents/read-signing-key.ts'
import { revokeCredential } from '../../../core/credentials/revoke-credential.ts'
import { inTurn } from '../../../core/turns.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, pageLimit } from '../paging.ts'
import { optional, timestamp, timestampOrNull } from '../wire.ts'

const tags = ['agent']

/** Requests of an agent about itself. */
export function statusRoutes(http: Http): void {
  selfRoutes(http)
  activeRoutes(http)
}

/** Its status, its key and its deletion. */
function selfRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/status', {
    schema: { summary: 'Who am I, and what do I hold', tags, response: { 200: AgentStatus } },
    handle: async ({ actor }) => {
      const status = await inTurn(core, actor.caller, () => agentStatus(core, actor.caller))
      return {
        id: status.id,
        name: status.name,
        scopes: status.scopes,
        created_at: timestamp(status.createdAt),
        last_used: timestampOrNull(status.lastUsed),
        expires_at: timestampOrNull(status.expiresAt),
        active_credentials: status.activeCredentials.map((one) => ({
          id: one.id,
          backend: one.backend,
          expires_at: timestamp(one.expiresAt),
        })),
        pending_requests: status.pendingRequests.map((one) => ({
          id: one.id,
          scopes: one.scopes,
          created_at: timestamp(one.createdAt),
          expires_at: timestamp(one.expiresAt),
        })),
      }
    },
  })

  addRoute(http, 'GET /v1/signing-key', {
    schema: {
      summary: 'My key for signing commits',
      description: 'The private half requires a token with all scopes of its agent.',
      tags,
      querystring: SigningKeyQuery,
      response: { 200: SigningKey },
    },
    handle: async ({ actor, query }) => {
      const key = await readSigningKey(core, actor, query.private_key !== false)
      const git = {
        'user.name': key.name,
        'user.email': key.email,
        'user.signingkey': key.keyId,
        'gpg.format': 'openpgp',
        'commit.gpgsign': 'true',
      }
      return {
        key_id: key.keyId,
        public_key: key.publicKey,
        ...optional('private_key', key.privateKey),
        email: key.email,
        name: key.name,
        ...(query.format === 'git' ? { git_config: git } : {}),
      }
    },
  })

  addRoute(http, 'DELETE /v1/self', {
    schema: {
      summary: 'Delete myself, and revoke all my credentials',
      description: 'Requires a token with all scopes of its agent.',
      tags,
      response: { 204: Type.Null() },
    },
    handle: async ({ actor, reply }) => {
      await deleteSelf(core, actor)
      return reply.code(204).send()
    },
  })
}

/** Its active credentials. */
function activeRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/active', {
    schema: {
      summary: 'My active credentials, oldest first',
      tags,
      querystring: PageQuery,
      response: { 200: Type.Array(ActiveCredential) },
    },
    handle: async (call) => {
      const limit = pageLimit(call.query.limit)
      const { caller } = call.actor
      const rows = await inTurn(core, caller, () =>
        listActive(core, caller, call.query.cursor ?? '', limit + 1),
      )
      return firstPage(call, rows, limit, ({ id }) => id).map((row) => ({
        id: row.id,
        backend: row.backend,
        expires_at: timestamp(row.expiresAt),
        created_at: timestamp(row.createdAt),
      }))
    },
  })

  addRoute(http, 'DELETE /v1/active/:id', {
    schema: {
      summary: 'Revoke one of my credentials',
      tags,
      params: CredentialId,
      response: { 204: Type.Null() },
    },
    handle: async ({ actor, params, reply }) => {
      await revokeCredential(core, actor, params.id)
      return reply.code(204).send()
    },
  })
}
