import { lowestIdAt } from '../../domain/ids.ts'
import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { EnrollmentRow } from '../schema/rows.ts'

export function createEnrollments(engine: Engine) {
  return { ...enrollmentReads(engine), ...enrollmentSteps(engine) }
}

function enrollmentReads(engine: Engine) {
  const { build, read } = engine
  const pendingOf = engine.prepare<EnrollmentRow>(
    "SELECT * FROM enrollments WHERE agent_id = ? AND status = 'pending' ORDER BY id LIMIT 100",
  )
  const openOf = engine.prepare<EnrollmentRow>(
    [
      "SELECT * FROM enrollments WHERE status = 'pending' AND fingerprint = ?",
      'SELECT * FROM enrollments WHERE collect_until IS NOT NULL AND fingerprint = ?',
      'SELECT * FROM enrollments WHERE erase_at IS NOT NULL AND fingerprint = ?',
    ].join(' UNION ALL '),
  )
  const all = () => build.selectFrom('enrollments').selectAll()
  return {
    find: async (id: string): Promise<EnrollmentRow | undefined> =>
      (await read<EnrollmentRow>(all().where('id', '=', id)))[0],
    /** Oldest first, those after `cursor`. */
    list: (
      status: string | undefined,
      cursor: string | undefined,
      limit: number,
    ): Promise<EnrollmentRow[]> => {
      let query = all()
      if (status !== undefined) query = query.where('status', '=', status)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      return read<EnrollmentRow>(query.orderBy('id').limit(limit))
    },
    /** Those of this key that are still to be decided, or to be collected: each part has an index. */
    openOf: (fingerprint: string): Promise<EnrollmentRow[]> =>
      openOf([fingerprint, fingerprint, fingerprint]),
    pendingOf: (agentId: string): Promise<EnrollmentRow[]> => pendingOf([agentId]),
    countPending: (atMost: number): Promise<number> =>
      countRows(
        engine,
        build.selectFrom('enrollments').select('id').where('status', '=', 'pending').limit(atMost),
      ),
    expired: (now: number, limit: number): Promise<EnrollmentRow[]> =>
      read<EnrollmentRow>(all().where('status', '=', 'pending').where('expires_at', '<=', now).limit(limit)),
    /** Ids of the oldest that were decided before `time` and leave nothing to do; all were made before it. */
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
    uncollected: (now: number, limit: number): Promise<EnrollmentRow[]> =>
      read<EnrollmentRow>(all().where('collect_until', '<=', now).limit(limit)),
  }
}

function enrollmentSteps({ build }: Engine) {
  return {
    drop: (ids: readonly string[]): Step =>
      run(build.deleteFrom('enrollments').where('id', 'in', ids), 'any'),
    decide: (id: string, set: Partial<EnrollmentRow>): Step =>
      run(build.updateTable('enrollments').set(set).where('id', '=', id).where('status', '=', 'pending'), 1),
    /** The first proven fetch: from now on the answer is kept only until `eraseAt`. */
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
    /** What an agent that has ended still had: amendments, and an answer that is worth nothing any more. */
    expireOf: (agentId: string, now: number): Step[] => [
      run(
        build
          .updateTable('enrollments')
          .set({ status: 'expired', decided_at: now, answer: null })
          .where('agent_id', '=', agentId)
          .where('status', '=', 'pending'),
        'any',
      ),
      // Nobody comes for it now; the job that expires makes the entry.
      run(
        build
          .updateTable('enrollments')
          .set({ answer: null, collect_until: now })
          .where('agent_id', '=', agentId)
          .where('collect_until', 'is not', null),
        'any',
      ),
      run(
        build
          .updateTable('enrollments')
          .set({ answer: null, erase_at: null })
          .where('agent_id', '=', agentId)
          .where('erase_at', 'is not', null),
        'any',
      ),
    ],
  }
}
