import type { OpenBackend } from '../../backends/open-backends.ts'
import type { Credential } from '../../domain/credential.ts'
import { canonicalJson } from '../../domain/formats/canonical-json.ts'
import type { IdempotencyRecord } from '../../domain/idempotency.ts'
import { IDEMPOTENCY_MS, IDEMPOTENT_SECRET_MS } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { Granted, IdempotencyClaim, IssueCommand, IssuedCredential } from './issue-attempt.ts'

const KEY = /^[\x21-\x7e]{1,255}$/

/**
 * The same key and request from the same agent within a day: the same credential, with its secret while that is kept.
 * Throws `conflict` for another request under the same key. Also the claim, to record or to repeat.
 */
export async function findReplay(
  core: Pick<Core, 'store' | 'hasher' | 'sealer' | 'overdue'>,
  actor: Actor<AgentCaller>,
  backend: OpenBackend,
  command: IssueCommand,
): Promise<{ reply?: IssuedCredential; claim: IdempotencyClaim }> {
  const { caller } = actor
  const claim = claimOf(core, backend, command)
  const { idempotency, credentials } = core.store
  const known = await idempotency.find(caller.agentId, claim.keyHash)
  if (known === undefined) return { claim }
  if (known.expiresAt <= core.store.now()) {
    // Not cleared away yet: the key is free again. Release this record only: another request may have made the next one.
    await commit(core, actor, [idempotency.release(caller.agentId, claim.keyHash, known.credentialId)])
    return { claim }
  }
  if (known.bodyHash !== claim.bodyHash)
    throw new Problem('conflict', { message: 'This Idempotency-Key was used for another request.' })
  const credential = await credentials.find(known.credentialId)
  if (credential === undefined) return { claim }
  if (isUnderWay(credential, known, core.store.now()) || core.overdue.has(credential.id))
    throw new Problem('conflict', {
      message: 'The first request with this Idempotency-Key is still under way.',
      retryAfterSeconds: 1,
    })
  return { reply: repeated(core, credential, known), claim }
}

function claimOf(
  { hasher }: Pick<Core, 'hasher'>,
  backend: OpenBackend,
  command: IssueCommand,
): IdempotencyClaim {
  const { idempotencyKey: key = '', ...asked } = command
  if (!KEY.test(key)) throw invalid('"Idempotency-Key" is 1 to 255 visible ASCII characters.')
  return {
    keyHash: hasher.hash(`idempotency|${key}`),
    bodyHash: hasher.hash(canonicalJson({ ...asked, backend: backend.uid })),
  }
}

/**
 * Or was when the claim was read: a failed or interrupted issue has released its claim since, and the next attempt sees
 * that.
 */
function isUnderWay({ state, endReason }: Credential, known: IdempotencyRecord, now: number): boolean {
  if (state === 'active') return known.sealedReply === null && known.eraseAt > now
  return state === 'pending' || state === 'failed' || endReason === 'interrupted'
}

function repeated(
  core: Pick<Core, 'store' | 'sealer'>,
  credential: Credential,
  { sealedReply, eraseAt }: IdempotencyRecord,
): IssuedCredential {
  const isKept = eraseAt > core.store.now() && credential.state === 'active'
  const kept = sealedReply === null || !isKept ? undefined : openReply(core, credential.id, sealedReply)
  return {
    id: credential.id,
    secret: kept?.token,
    fields: kept?.fields,
    backend: credential.backend,
    scopes: credential.scopes,
    leftOut: kept?.leftOut ?? [],
    ttlMs: credential.ttlMs,
    createdAt: credential.createdAt,
    expiresAt: credential.expiresAt,
    upstreamExpiresAt: credential.upstreamExpiresAt,
    isRepeated: true,
  }
}

type Parts = Pick<Core, 'store' | 'sealer'>

/** Records the claim beside the credential, with the reply where it is known. Refused as not unique when the key is taken. */
export function claimSteps(
  core: Parts,
  { holder, plan }: Granted,
  reply: IssuedCredential | undefined,
): Step[] {
  if (plan.claim === undefined) return []
  return [
    core.store.idempotency.insert({
      agentId: holder.agentId,
      keyHash: plan.claim.keyHash,
      bodyHash: plan.claim.bodyHash,
      credentialId: plan.id,
      sealedReply: reply === undefined ? null : sealReply(core, reply),
      eraseAt: plan.now + IDEMPOTENT_SECRET_MS,
      expiresAt: plan.now + IDEMPOTENCY_MS,
    }),
  ]
}

/** Adds the reply to the claim that was recorded before the upstream was asked. */
export function keepReplySteps(core: Parts, { holder, plan }: Granted, reply: IssuedCredential): Step[] {
  if (plan.claim === undefined) return []
  const eraseAt = core.store.now() + IDEMPOTENT_SECRET_MS
  const sealed = sealReply(core, reply)
  return [core.store.idempotency.keepReply(holder.agentId, plan.claim.keyHash, sealed, eraseAt)]
}

/** Nothing was issued: the same key may try again. */
export function releaseClaim(core: Pick<Core, 'store'>, { holder, plan }: Granted): Step[] {
  return plan.claim === undefined
    ? []
    : [core.store.idempotency.release(holder.agentId, plan.claim.keyHash, plan.id)]
}

function sealReply(core: Pick<Core, 'sealer'>, reply: IssuedCredential): string {
  const { id, secret, fields, leftOut } = reply
  // Under the names of the first version, whose nodes may read it.
  const kept = { token: secret, fields, ...(leftOut.length === 0 ? {} : { leftOut }) }
  return core.sealer.seal('idempotency', id, 'reply', JSON.stringify(kept))
}

function openReply(
  core: Pick<Core, 'sealer'>,
  credentialId: string,
  sealed: string,
): { token: string; fields?: Record<string, string | number>; leftOut?: string[] } {
  return JSON.parse(core.sealer.open('idempotency', credentialId, 'reply', sealed))
}
