import {
  claimIdOf,
  type Enrollment,
  type EnrollmentDecision,
  type EnrollmentStatus,
  type EnrollmentType,
} from '../../domain/enrollment.ts'
import { lowestIdAt } from '../../domain/ids.ts'
import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { EnrollmentRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

export function createEnrollments(engine: Engine) {
  return { ...enrollmentReads(engine), ...decisionSteps(engine), ...endingSteps(engine) }
}

function enrollmentReads(engine: Engine) {
  const { build, read } = engine
  const pendingOf = engine.prepare<EnrollmentRow>(
    "SELECT * FROM enrollments WHERE agent_id = ? AND status = 'pending' ORDER BY id LIMIT 100",
  )
  const expired = engine.prepare<EnrollmentRow>(
    "SELECT * FROM enrollments WHERE status = 'pending' AND expires_at <= ? LIMIT ?",
  )
  const claimsFrom = engine.prepare<{ n: number }>(
    `SELECT count(*) AS n FROM (SELECT name FROM enrollments WHERE status = 'pending' AND type = 'claim'
      AND name >= ? AND name < ? AND length(name) = ? LIMIT ?) AS claims`,
  )
  const openOf = engine.prepare<EnrollmentRow>(
    [
      "SELECT * FROM enrollments WHERE status = 'pending' AND fingerprint = ?",
      'SELECT * FROM enrollments WHERE collect_until IS NOT NULL AND fingerprint = ?',
      'SELECT * FROM enrollments WHERE erase_at IS NOT NULL AND fingerprint = ?',
    ].join(' UNION ALL '),
  )
  const all = () => build.selectFrom('enrollments').selectAll()
  const pendingOfType = (type: EnrollmentType) =>
    build.selectFrom('enrollments').where('status', '=', 'pending').where('type', '=', type)
  const decoded = async (rows: Promise<EnrollmentRow[]>): Promise<Enrollment[]> =>
    (await rows).map(codecs.enrollments.decode)
  return {
    find: async (id: string): Promise<Enrollment | undefined> =>
      (await decoded(read<EnrollmentRow>(all().where('id', '=', id))))[0],
    /** Oldest first, those after `cursor`. */
    list: (
      status: EnrollmentStatus | undefined,
      cursor: string | undefined,
      limit: number,
    ): Promise<Enrollment[]> => {
      let query = all()
      if (status !== undefined) query = query.where('status', '=', status)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      return decoded(read<EnrollmentRow>(query.orderBy('id').limit(limit)))
    },
    /** Enrollments of this key that wait for a decision or for collection; each part of the query has an index. */
    openOf: (fingerprint: string): Promise<Enrollment[]> =>
      decoded(openOf([fingerprint, fingerprint, fingerprint])),
    /** What an agent asks for. A claim is nothing that it asks for. */
    pendingOf: async (agentId: string): Promise<Enrollment[]> =>
      (await decoded(pendingOf([agentId]))).filter(({ type }) => type !== 'claim'),
    /** Pending claims whose names are `from`, or more, and less than `to`, and have this length. */
    countClaims: async (
      { from, to, length }: { readonly from: string; readonly to: string; readonly length: number },
      atMost: number,
    ): Promise<number> => (await claimsFrom([from, to, length, atMost]))[0]?.n ?? 0,
    /** Agents' pending requests for more scopes. */
    countAmendments: (atMost: number): Promise<number> =>
      countRows(engine, pendingOfType('amendment').select('id').limit(atMost)),
    /** Where the pending enrollments came from. */
    pendingAddresses: async (atMost: number): Promise<(string | null)[]> =>
      (
        await read<{ ip_address: string | null }>(pendingOfType('enroll').select('ip_address').limit(atMost))
      ).map((row) => row.ip_address),
    expired: (now: number, limit: number): Promise<Enrollment[]> => decoded(expired([now, limit])),
    /** Ids of enrollments decided before `time` with nothing left to do, oldest first; all were made before `time`. */
    oldestDecided: async (time: number, limit: number): Promise<string[]> => {
      const decided = build
        .selectFrom('enrollments')
        .select('id')
        .where('id', '<', lowestIdAt('enrollment', time))
        .where('decided_at', '<', time)
        .where('status', '!=', 'pending')
        .where('collect_until', 'is', null)
        .where('erase_at', 'is', null)
      return (await read<{ id: string }>(decided.orderBy('id').limit(limit))).map((row) => row.id)
    },
    uncollected: (now: number, limit: number): Promise<Enrollment[]> =>
      decoded(read<EnrollmentRow>(all().where('collect_until', '<=', now).limit(limit))),
  }
}

function decisionSteps({ build }: Engine) {
  return {
    insert: (enrollment: Enrollment): Step => insert('enrollments', codecs.enrollments.encode(enrollment)),
    /** Only while it is pending. */
    decide: (id: string, decision: EnrollmentDecision): Step =>
      run(
        build
          .updateTable('enrollments')
          .set({
            status: decision.status,
            decided_at: decision.decidedAt,
            decided_by: decision.decidedBy,
            // A column whose value is undefined is left as it is.
            decision_note: decision.decisionNote,
            agent_id: decision.agentId,
            scopes: decision.scopes === undefined ? undefined : JSON.stringify(decision.scopes),
            lifetime_ms: decision.lifetimeMs,
            answer: decision.sealedAnswer,
            collect_until: decision.collectUntil,
          })
          .where('id', '=', id)
          .where('status', '=', 'pending'),
        1,
      ),
    /** The agent got rights in another way: its claim, if one waits, is decided with that. */
    settleClaim: (agentId: string, decision: Pick<Enrollment, 'scopes' | 'decidedAt' | 'decidedBy'>): Step =>
      run(
        build
          .updateTable('enrollments')
          .set({
            status: 'approved',
            scopes: JSON.stringify(decision.scopes),
            decided_at: decision.decidedAt,
            decided_by: decision.decidedBy,
          })
          .where('id', '=', claimIdOf(agentId))
          .where('status', '=', 'pending'),
        'any',
      ),
    /** The first proven fetch: the answer is erased at `eraseAt`. */
    collect: (id: string, now: number, eraseAt: number): Step =>
      run(
        build
          .updateTable('enrollments')
          .set({ collected_at: now, collect_until: null, erase_at: eraseAt })
          .where('id', '=', id)
          .where('collected_at', 'is', null)
          .where('answer', 'is not', null),
        1,
      ),
  }
}

function endingSteps({ build }: Engine) {
  return {
    drop: (ids: readonly string[]): Step =>
      run(build.deleteFrom('enrollments').where('id', 'in', ids), 'any'),
    /** Expires an approved enrollment that nobody has collected. */
    abandon: (id: string): Step =>
      run(
        build
          .updateTable('enrollments')
          .set({ collect_until: null, answer: null, status: 'expired' })
          .where('id', '=', id)
          .where('collected_at', 'is', null),
        1,
      ),
    eraseAnswers: (now: number): Step =>
      run(
        build.updateTable('enrollments').set({ answer: null, erase_at: null }).where('erase_at', '<=', now),
        'any',
      ),
    /** For an agent that ends: expires its amendments, and erases an answer that is worthless now. */
    expireOf: (agentId: string, now: number): Step[] => {
      const own = build.updateTable('enrollments').where('agent_id', '=', agentId)
      const amended = own.set({ status: 'expired', decided_at: now, answer: null })
      return [
        run(amended.where('status', '=', 'pending'), 'any'),
        // Nobody can collect it any more. Due now, so that the job that expires enrollments records it.
        run(own.set({ answer: null, collect_until: now }).where('collect_until', 'is not', null), 'any'),
        run(own.set({ answer: null, erase_at: null }).where('erase_at', 'is not', null), 'any'),
      ]
    },
  }
}
