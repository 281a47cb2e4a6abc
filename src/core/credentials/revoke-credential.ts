import type { EndReason } from '../../domain/credential.ts'
import { Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import { audit } from '../audit/entry.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { IssuedCredential } from './issue-plan.ts'
import { agentOf, settleUpstream } from './settle-upstream.ts'

/** `revoked`: gone upstream too. `pending`: being tried. `expires`: the upstream can only wait for its own expiry. */
export type UpstreamEnd = 'revoked' | 'pending' | 'expires'

export interface Revoked {
  readonly id: string
  /** Epoch ms of its first end, by whatever cause. */
  readonly revokedAt: number
  readonly upstream: UpstreamEnd
}

/** How long the reply waits for the upstream, in ms; after that it goes on by itself. */
const WAIT_MS = 3_000
/** The sweeper leaves it to this attempt for so long. */
const ATTEMPT_MS = 30_000

/** The caller's own, or anybody's with `scope`. Another's is unknown to a caller: `credential_not_found`. */
export async function findVisible(
  core: Pick<Core, 'store'>,
  caller: Caller,
  id: string,
  scope: string | undefined,
): Promise<CredentialRow> {
  const row = await core.store.credentials.find(id)
  const isMine = caller.kind === 'agent' && row?.agent_id === caller.agentId
  const maySeeAll = scope !== undefined && (caller.kind === 'local' || coversAny(caller.scopes, scope))
  if (row === undefined || !(isMine || maySeeAll)) throw new Problem('credential_not_found')
  return row
}

/**
 * Idempotent (decisions §4.6). The local state is durable before the reply; the upstream is tried at once and,
 * should it fail, for ever after. `scope` is what lets a caller revoke another's. Throws `credential_not_found`.
 */
export async function revokeCredential(
  core: Core,
  caller: Caller,
  id: string,
  origin: Origin,
  scope?: string,
): Promise<Revoked> {
  for (;;) {
    const row = await findVisible(core, caller, id, scope)
    if (row.state !== 'active' && row.state !== 'pending') return present(row)
    // Past its expiry but not swept yet: ending it now is the sweeper's work done early, and truthfully `expired`.
    const reason: EndReason =
      row.state === 'active' && row.expires_at <= core.store.now() ? 'expired' : 'revoked'
    if (await endNow(core, caller, row, reason, origin)) return attempt(core, id)
  }
}

/** False when it changed meanwhile. */
async function endNow(
  core: Core,
  caller: Caller,
  row: CredentialRow,
  reason: EndReason,
  origin: Origin,
): Promise<boolean> {
  // Who heard nothing may ask again with the same Idempotency-Key.
  const isUntold = row.state === 'pending' || reason === 'undelivered'
  const steps: Step[] = [
    endStep(core, row, reason),
    ...(isUntold ? [core.store.tokens.forgetIdempotentOf(row.agent_id, row.id)] : []),
    audit(core, caller, origin, {
      action: reason === 'expired' ? 'credential.expired' : 'credential.revoked',
      agent: agentOf(row),
      backend: row.backend,
      credentialId: row.id,
      scopes: row.scopes,
      ttlMs: row.ttl_ms,
      ...(reason === 'undelivered' ? { details: { reason } } : {}),
    }),
  ]
  return (await commit(core, steps, { urgent: true })).done
}

function endStep(core: Core, row: CredentialRow, reason: EndReason): Step {
  const { credentials } = core.store
  const now = core.store.now()
  // Its issue is under way: that finds it ended, and undoes at once what it has got.
  if (row.state === 'pending') return credentials.interrupt(row.id, now, now + ATTEMPT_MS, null, reason)
  if (row.revocation !== 'exact')
    return credentials.finishActive(row.id, reason === 'expired' ? 'expired' : 'revoked', reason, now)
  const endedAt = reason === 'expired' ? row.expires_at : now
  return credentials.endActive(row.id, reason, endedAt, now + ATTEMPT_MS)
}

async function attempt(core: Core, id: string): Promise<Revoked> {
  const row = await core.store.credentials.find(id)
  if (row === undefined) throw new Problem('credential_not_found')
  if (row.state !== 'revoking') return present(row)
  const backends = await core.backends.at(await core.store.generation())
  const backend = backends.byUid.get(row.backend_uid)
  if (backend === undefined) return present(row)
  const settled = settleUpstream(core, backend, row).catch((error: unknown) => {
    core.log.error(
      { err: error, credential: id },
      'the revocation could not be recorded; the sweeper will go on',
    )
    return false
  })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, WAIT_MS, false)
  })
  const done = await Promise.race([settled, late])
  clearTimeout(timer)
  return { ...present(row), upstream: done ? 'revoked' : 'pending' }
}

/** Of one that has ended. */
export function upstreamEnd(row: CredentialRow): UpstreamEnd {
  if (row.revocation !== 'exact') return 'expires'
  return row.settled_at === null ? 'pending' : 'revoked'
}

function present(row: CredentialRow): Revoked {
  return { id: row.id, revokedAt: row.ended_at ?? row.expires_at, upstream: upstreamEnd(row) }
}

/**
 * The caller hung up before the answer was written: nobody has the secret, so it ends (security rules). One that an
 * earlier request was given stays: it may well be in use.
 */
export async function revokeUndelivered(
  core: Core,
  caller: Caller,
  { id, isRepeated }: Pick<IssuedCredential, 'id' | 'isRepeated'>,
  origin: Origin,
): Promise<void> {
  if (!core.settings.revokeUndelivered || isRepeated === true) return
  try {
    const row = await core.store.credentials.find(id)
    if (row?.state === 'active' && (await endNow(core, caller, row, 'undelivered', origin)))
      await attempt(core, id)
  } catch (error) {
    core.log.error(
      { err: error, credential: id },
      'an undelivered credential could not be revoked; it ends at its expiry',
    )
  }
}
