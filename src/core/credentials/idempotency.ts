import type { OpenBackend } from '../../backends/registry.ts'
import { formatDuration } from '../../domain/duration.ts'
import { IDEMPOTENCY_MS, IDEMPOTENT_SECRET_MS } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import type { AgentCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { readScopes } from '../held-scopes.ts'
import type { IdempotencyClaim, IssueCommand, IssuedCredential, Plan } from './issue-plan.ts'

const KEY = /^[\x21-\x7e]{1,255}$/

/**
 * The same key and request from the same agent within a day: the same credential again, with its secret while
 * that is kept. Throws `conflict` for another request under the same key. Otherwise the claim to be recorded.
 */
export async function replayReply(
  core: Core,
  caller: AgentCaller,
  backend: OpenBackend,
  command: IssueCommand,
): Promise<{ reply?: IssuedCredential; claim?: IdempotencyClaim }> {
  const key = command.idempotencyKey ?? ''
  if (!KEY.test(key)) throw invalid('"Idempotency-Key" is 1 to 255 visible ASCII characters.')
  const { idempotencyKey: _, ...asked } = command
  const claim = {
    keyHash: core.hasher.hash(`idempotency|${key}`),
    bodyHash: core.hasher.hash(canonical({ ...asked, backend: backend.uid })),
  }
  const known = await core.store.tokens.findIdempotent(caller.agentId, claim.keyHash, 0)
  if (known === undefined) return { claim }
  if (known.expires_at <= core.store.now()) {
    // Not tidied away yet: the key is free again. This claim only: another request may have made the next one.
    await commit(core, [
      core.store.tokens.forgetIdempotent(caller.agentId, claim.keyHash, known.credential_id),
    ])
    return { claim }
  }
  if (known.body_hash !== claim.bodyHash)
    throw new Problem('conflict', { message: 'This Idempotency-Key was used for another request.' })
  const row = await core.store.credentials.find(known.credential_id)
  if (row === undefined) return { claim }
  if (
    isUnderWay(row) ||
    (row.state === 'active' && known.reply === null && known.erase_at > core.store.now())
  )
    throw new Problem('conflict', {
      message: 'The first request with this Idempotency-Key is still under way.',
      retryAfterSeconds: 1,
    })
  const sealed =
    known.reply !== null && known.erase_at > core.store.now() && row.state === 'active'
      ? known.reply
      : undefined
  const secret = sealed === undefined ? undefined : openReply(core, row.id, sealed)
  return {
    reply: {
      id: row.id,
      token: secret?.token,
      fields: secret?.fields,
      backend: row.backend,
      scopes: readScopes(row.scopes),
      ttl: formatDuration(row.ttl_ms),
      createdAt: row.created_at,
      expiresAt: row.expires_at,
      upstreamExpiresAt: row.upstream_expires_at,
      isRepeated: true,
    },
  }
}

/** Or has been since the claim was read: both have moved on by then, and the next try finds them so. */
function isUnderWay({ state, end_reason }: Pick<CredentialRow, 'state' | 'end_reason'>): boolean {
  return state === 'pending' || state === 'failed' || end_reason === 'interrupted'
}

/** The claim beside the record, with the reply where it is known; a second one under the key is refused as not unique. */
export function claimSteps(core: Core, plan: Plan, reply: IssuedCredential | undefined): Step[] {
  if (plan.claim === undefined) return []
  return [
    {
      op: 'insert',
      table: 'idempotency',
      row: {
        agent_id: plan.caller.agentId,
        key_hash: plan.claim.keyHash,
        body_hash: plan.claim.bodyHash,
        credential_id: plan.id,
        reply: reply === undefined ? null : sealReply(core, reply),
        erase_at: plan.now + IDEMPOTENT_SECRET_MS,
        expires_at: plan.now + IDEMPOTENCY_MS,
      },
    },
  ]
}

/** The reply of a claim that was recorded with the intent. */
export function keepReplyStep(core: Core, plan: Plan, reply: IssuedCredential): Step[] {
  if (plan.claim === undefined) return []
  const eraseAt = core.store.now() + IDEMPOTENT_SECRET_MS
  return [
    core.store.tokens.keepReply(plan.caller.agentId, plan.claim.keyHash, sealReply(core, reply), eraseAt),
  ]
}

/** Nothing was issued: the same key may try again. */
export function forgetClaim(core: Core, plan: Plan): Step[] {
  return plan.claim === undefined
    ? []
    : [core.store.tokens.forgetIdempotent(plan.caller.agentId, plan.claim.keyHash, plan.id)]
}

function sealReply(core: Core, reply: IssuedCredential): string {
  return core.sealer.seal(
    'idempotency',
    reply.id,
    'reply',
    JSON.stringify({ token: reply.token, fields: reply.fields }),
  )
}

function openReply(
  core: Core,
  credentialId: string,
  sealed: string,
): { token: string; fields?: Record<string, string | number> } {
  return JSON.parse(core.sealer.open('idempotency', credentialId, 'reply', sealed))
}

/** JSON with its keys in order, so that the same request has the same hash. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
