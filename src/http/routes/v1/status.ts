import { agentStatus, listActive } from '../../../core/agents/agent-status.ts'
import { deleteSelf } from '../../../core/agents/end-agent.ts'
import { readSigningKey } from '../../../core/agents/read-signing-key.ts'
import { signObject } from '../../../core/agents/sign-object.ts'
import { revokeCredential } from '../../../core/credentials/revoke-credential.ts'
import { endLogin } from '../../../core/identities/end-login.ts'
import { inTurn } from '../../../core/turns.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { linked } from '../paging.ts'
import { optional, timestamp, timestampOrNull } from '../wire.ts'

/** Requests of an agent about itself. */
export function statusRoutes(http: Http): void {
  selfRoutes(http)
  keyRoutes(http)
  activeRoutes(http)
}

/** Its status and its deletion. */
function selfRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/status', async ({ actor }) => {
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
  })

  addRoute(http, 'DELETE /v1/self', async ({ actor }) => {
    await deleteSelf(core, actor)
  })

  addRoute(http, 'DELETE /v1/login', async ({ actor }) => {
    await endLogin(core, actor)
  })
}

/** Its key for signing commits. */
function keyRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/signing-key', async ({ actor, query }) => {
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
  })

  addRoute(http, 'POST /v1/sign', async ({ actor, body }) => {
    const signed = await signObject(core, actor, body)
    return {
      signature: signed.signature,
      key_id: signed.keyId,
      fingerprint: signed.fingerprint,
      created_at: timestamp(signed.createdAt),
      email: signed.email,
      name: signed.name,
    }
  })
}

/** Its active credentials. */
function activeRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/active', async (call) => {
    const { caller } = call.actor
    const page = await inTurn(core, caller, () => listActive(core, caller, call.query))
    return linked(call, page).map((row) => ({
      id: row.id,
      backend: row.backend,
      expires_at: timestamp(row.expiresAt),
      created_at: timestamp(row.createdAt),
    }))
  })

  addRoute(http, 'DELETE /v1/active/:id', async ({ actor, params }) => {
    await revokeCredential(core, actor, params.id)
  })
}
