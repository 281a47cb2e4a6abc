import type { Actor } from '../../../core/caller.ts'
import { approveEnrollment } from '../../../core/enrollments/approve-enrollment.ts'
import { judgePending, type PendingJudgement } from '../../../core/enrollments/judge-pending.ts'
import { type ListedEnrollment, listPending, readPending } from '../../../core/enrollments/list-pending.ts'
import { rejectEnrollment } from '../../../core/enrollments/reject-enrollment.ts'
import { scopeWarnings } from '../../../core/granting-backend.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { type Enrollment, enrollmentStatusAt } from '../../../domain/enrollment.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { linked } from '../paging.ts'
import { optional, presentWarnings, timestamp, timestampOrNull } from '../wire.ts'

export function adminPendingRoutes(http: Http): void {
  const { core } = http

  const judged = async (actor: Actor, found: readonly ListedEnrollment[]) => {
    const pending = found.filter(({ status }) => status === 'pending')
    const judgements = await judgePending(core, actor, pending)
    return Promise.all(found.map((one) => present(core, one, judgements.get(one.id))))
  }

  addRoute(http, 'GET /v1/admin/pending', async ({ actor, query, request, reply }) =>
    judged(actor, linked({ request, reply }, await listPending(core, query))),
  )

  addRoute(
    http,
    'GET /v1/admin/pending/:id',
    async ({ actor, params }) => (await judged(actor, [await readPending(core, params.id)]))[0],
  )

  addRoute(http, 'POST /v1/admin/pending/:id/approve', async ({ actor, params, body }) =>
    present(core, await approveEnrollment(core, actor, params.id, body ?? {})),
  )

  addRoute(http, 'POST /v1/admin/pending/:id/reject', async ({ actor, params, body }) =>
    present(core, await rejectEnrollment(core, actor, params.id, body ?? {})),
  )
}

async function present(
  core: Http['core'],
  enrollment: Enrollment & { readonly isTaken?: boolean },
  judgement?: PendingJudgement,
) {
  const { note, reason, lifetimeMs, agentId, decidedAt, decidedBy, decisionNote, collectedAt } = enrollment
  return {
    id: enrollment.id,
    name: enrollment.name,
    type: enrollment.type,
    scopes: enrollment.scopes,
    public_key_fingerprint: enrollment.fingerprint,
    metadata: enrollment.metadata,
    ip_address: enrollment.ipAddress,
    created_at: timestamp(enrollment.createdAt),
    expires_at: timestamp(enrollment.expiresAt),
    status: enrollmentStatusAt(enrollment, core.store.now()),
    ...(enrollment.isTaken === true ? { name_taken: true } : {}),
    ...(judgement === undefined ? {} : presentJudgement(judgement)),
    ...optional('note', note === '' ? null : note),
    ...optional('reason', reason),
    ...(lifetimeMs === null ? {} : { expires_in: formatDuration(lifetimeMs) }),
    ...optional('agent_id', agentId),
    ...optional('decided_at', timestampOrNull(decidedAt)),
    ...optional('decided_by', decidedBy),
    ...optional('decision_note', decisionNote),
    ...optional('collected_at', timestampOrNull(collectedAt)),
    ...presentWarnings(few(await scopeWarnings(core, enrollment.scopes))),
  }
}

function presentJudgement({ difference, mayApprove, missingScopes }: PendingJudgement) {
  const { added, present: has, impossible } = difference
  return {
    difference: { added: [...added], present: [...has], impossible: [...impossible] },
    may_approve: mayApprove,
    ...optional('missing_scopes', missingScopes.length === 0 ? undefined : [...missingScopes]),
  }
}

/** Anybody may send 64 long scopes, each of which gets a sentence. */
const MOST_WARNINGS = 4

function few(warnings: readonly string[]): readonly string[] {
  if (warnings.length <= MOST_WARNINGS) return warnings
  const shown = warnings.slice(0, MOST_WARNINGS - 1)
  return [...shown, `There are ${warnings.length - shown.length} more warnings like these.`]
}
