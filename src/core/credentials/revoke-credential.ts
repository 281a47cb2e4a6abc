import { type Credential, type EndReason, endState } from '../../domain/credential.ts'
import { Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import { claimedUntil } from '../backends/call-upstream.ts'
import { type Actor, type AgentCaller, type Caller, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { inTime, settleNow } from './settle-now.ts'
import { about } from './settle-upstream.ts'

/** `revoked`: gone upstream too. `pending`: still being tried. `expires`: it lasts until the upstream's own expiry. */
export type UpstreamEnd = 'revoked' | 'pending' | 'expires'

export interface Revoked {
  readonly id: string
  /** Epoch ms at which it first ended, for any reason. */
  readonly revokedAt: number
  readonly upstream: UpstreamEnd
}

/** The caller's own credential, with the token of a run one of that run, or any with `scope`. Throws `credential_not_found`, also for another agent's. */
export async function findVisible(
  core: Pick<Core, 'store'>,
  caller: Caller,
  id: string,
  scope: string | undefined,
): Promise<Credential> {
  const credential = await core.store.credentials.find(id)
  const isMine =
    caller.kind === 'agent' && credential?.agentId === caller.agentId && isInRun(caller, credential)
  const maySeeAll = scope !== undefined && (caller.kind === 'local' || coversAny(caller.scopes, scope))
  if (credential === undefined || !(isMine || maySeeAll)) throw new Problem('credential_not_found')
  return credential
}

/** The token of a run ends nothing else, whatever its scopes. */
function isOfRun({ caller }: Actor): boolean {
  return caller.kind === 'agent' && caller.run !== undefined
}

function isInRun({ run }: AgentCaller, { runId }: Credential): boolean {
  return run === undefined || run.id === runId
}

/**
 * Idempotent (decisions.md §4.6). The end is durable before the reply; the upstream is tried at once and, should it
 * fail, until it succeeds. `scope` lets a caller revoke another agent's. Throws `credential_not_found`.
 */
export async function revokeCredential(
  core: Core,
  actor: Actor,
  id: string,
  scope?: string,
): Promise<Revoked> {
  for (;;) {
    const credential = await findVisible(core, actor.caller, id, isOfRun(actor) ? undefined : scope)
    const { state, expiresAt } = credential
    if (state !== 'active' && state !== 'pending') return present(credential)
    // Expired but not swept yet: this does the sweeper's work early, and the truthful reason is `expired`.
    const reason = state === 'active' && expiresAt <= core.store.now() ? 'expired' : 'revoked'
    if (await endNow(core, actor, credential, reason)) return trySettling(core, id)
  }
}

/** As `revokeCredential`, for a credential that nobody has received: it ends also when the caller has ended by now. */
export async function endUnreceived(
  core: Core,
  actor: Actor,
  id: string,
  waiting: Waiting,
): Promise<Credential> {
  for (;;) {
    const credential = await core.store.credentials.find(id)
    if (credential === undefined) throw new Problem('credential_not_found')
    if (credential.state !== 'active') break
    const reason = credential.expiresAt <= core.store.now() ? 'expired' : 'revoked'
    if (!(await endNow(core, actor, credential, reason, { by: SYSTEM }))) continue
    await trySettling(core, id, waiting)
    break
  }
  const ended = await core.store.credentials.find(id)
  if (ended === undefined) throw new Problem('credential_not_found')
  return ended
}

/** False when the credential changed in the meantime. */
async function endNow(
  core: Core,
  actor: Actor,
  credential: Credential,
  reason: EndReason,
  { release = [], by = actor }: { release?: readonly Step[]; by?: Actor<Caller | undefined> } = {},
): Promise<boolean> {
  const { id, agentId, state, scopes, ttlMs } = credential
  // The caller heard nothing and may try again with the same Idempotency-Key.
  const steps: Step[] = [
    endStep(core, credential, reason),
    ...(state === 'pending' ? [core.store.idempotency.releaseOf(agentId, id)] : release),
    audit(core, actor, {
      action: reason === 'expired' ? 'credential.expired' : 'credential.revoked',
      ...about(credential),
      scopes,
      ttlMs,
      ...(reason === 'undelivered' ? { details: { reason } } : {}),
    }),
  ]
  return (await commit(core, by, steps, { urgent: true })).done
}

function endStep(core: Core, { id, state, revocation, expiresAt }: Credential, reason: EndReason): Step {
  const { credentials } = core.store
  const now = core.store.now()
  // Its issue is under way: the issue will find it ended, and withdraw what the upstream has issued.
  if (state === 'pending') return credentials.beginRevoking(id, state, reason, now, claimedUntil(core, now))
  if (revocation !== 'exact') return credentials.finishActive(id, endState(reason), reason, now)
  const endedAt = reason === 'expired' ? expiresAt : now
  return credentials.beginRevoking(id, 'active', reason, endedAt, claimedUntil(core, now))
}

interface Waiting {
  /** How long the caller waits for the upstream, in ms. */
  readonly waitMs: number
  /** Is told why it did not end the credential. */
  onFailure(error: unknown): void
}

async function trySettling(core: Core, id: string, waiting?: Waiting): Promise<Revoked> {
  const credential = await core.store.credentials.find(id)
  if (credential === undefined) throw new Problem('credential_not_found')
  if (credential.state !== 'revoking') return present(credential)
  const begun = await settleNow(core, credential, waiting?.onFailure)
  if (begun === undefined) return present(credential)
  const done = await inTime(begun.settled, waiting?.waitMs)
  return { ...present(credential), upstream: done ? 'revoked' : 'pending' }
}

/** For a credential that has ended. */
export function upstreamEnd({ revocation, settledAt }: Credential): UpstreamEnd {
  if (revocation !== 'exact') return 'expires'
  return settledAt === null ? 'pending' : 'revoked'
}

function present(credential: Credential): Revoked {
  const { id, endedAt, expiresAt } = credential
  return { id, revokedAt: endedAt ?? expiresAt, upstream: upstreamEnd(credential) }
}

export interface Undelivered {
  readonly id: string
  /** The request repeated an earlier one. */
  readonly isRepeated?: true
  /** The request carried an `Idempotency-Key`. */
  readonly isClaimed: boolean
}

/**
 * The caller hung up before the answer was written: nobody has the secret, so the credential ends (security rules).
 * If the request was repeated, the credential stays: the other request got the secret, which may be in use.
 */
export async function revokeUndelivered(
  core: Core,
  actor: Actor,
  { id, isRepeated, isClaimed }: Undelivered,
): Promise<void> {
  if (!core.settings.revokeUndelivered || isRepeated === true) return
  try {
    const credential = await core.store.credentials.find(id)
    if (credential?.state !== 'active') return
    const release = isClaimed ? [core.store.idempotency.releaseUnrepeated(credential.agentId, id)] : []
    // The server ends it by itself, even if the caller's token is no longer valid.
    if (await endNow(core, actor, credential, 'undelivered', { release, by: SYSTEM }))
      await trySettling(core, id)
  } catch (error) {
    core.log.error(
      { err: error, credential: id },
      'an undelivered credential could not be revoked; it ends at its expiry',
    )
  }
}
