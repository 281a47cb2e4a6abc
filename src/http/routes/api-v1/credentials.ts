import { type CredentialView, readCredential } from '../../../core/credentials/read-credential.ts'
import { revokeCredential } from '../../../core/credentials/revoke-credential.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { issueToCaller } from '../issue-to-caller.ts'
import { presentUse } from '../present-uses.ts'
import { optional, timestamp, timestampOrNull } from '../wire.ts'

export function credentialRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /api/v1/credentials', async (call) => {
    const issued = await issueToCaller(core, call, call.body)
    call.reply.header('location', `/api/v1/credentials/${issued.id}`)
    return {
      id: issued.id,
      token: issued.secret,
      backend: issued.backend,
      scopes: issued.scopes,
      expires_at: timestamp(issued.expiresAt),
      created_at: timestamp(issued.createdAt),
      ttl: formatDuration(issued.ttlMs),
      ...optional('upstream_expires_at', timestampOrNull(issued.upstreamExpiresAt)),
      fields: issued.fields,
      left_out: issued.leftOut.length === 0 ? undefined : issued.leftOut,
      uses: issued.uses?.map(presentUse),
    }
  })

  addRoute(http, 'GET /api/v1/credentials/:id', async ({ rule, actor, params }) =>
    present(await readCredential(core, actor.caller, params.id, rule.scope)),
  )

  addRoute(http, 'DELETE /api/v1/credentials/:id', async ({ rule, actor, params }) => {
    const revoked = await revokeCredential(core, actor, params.id, rule.scope)
    return {
      id: revoked.id,
      revoked: true,
      revoked_at: timestamp(revoked.revokedAt),
      upstream: revoked.upstream,
    }
  })
}

function present(view: CredentialView) {
  return {
    id: view.id,
    backend: view.backend,
    scopes: view.scopes,
    expires_at: timestamp(view.expiresAt),
    created_at: timestamp(view.createdAt),
    revoked: view.status === 'revoked',
    status: view.status,
    agent: view.agentName,
    ...optional('run', view.runId),
    ...optional('revoked_at', timestampOrNull(view.revokedAt)),
    ...optional('upstream', view.upstream),
    ...optional('upstream_expires_at', timestampOrNull(view.upstreamExpiresAt)),
  }
}
