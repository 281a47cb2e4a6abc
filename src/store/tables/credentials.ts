import { sql } from 'kysely'
import type { EndReason } from '../../domain/credential.ts'
import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { CredentialRow } from '../schema/rows.ts'
import type { EndedBy } from './end-all.ts'
import { endAll, endSome, expireAll } from './end-all.ts'

export type { EndedBy } from './end-all.ts'

export type Activation = Pick<
  CredentialRow,
  'expires_at' | 'upstream_expires_at' | 'due_at' | 'secret_hash' | 'handle'
>

/** How long another node leaves a claimed credential alone, in ms. */
const CLAIM_MS = 30_000

export function createCredentials(engine: Engine) {
  return {
    ...credentialReads(engine),
    ...credentialSteps(engine),
    ...settlingSteps(engine),
    ...dueReads(engine),
    endAll: (
      owner: { agent_id: string } | { backend_uid: string },
      reason: EndReason,
      now: number,
      by: EndedBy,
    ): Step[] => endAll(engine.build, owner, reason, now, by),
    endSome: (ids: readonly string[], reason: EndReason, now: number, by: EndedBy): Step[] =>
      endSome(engine, ids, reason, now, by),
    expireAll: (ids: readonly string[], now: number, by: EndedBy): Step[] => expireAll(engine, ids, now, by),
  }
}

function credentialReads(engine: Engine) {
  const { build, read } = engine
  // SQLite compiles a statement anew when a bare parameter of LIMIT is bound: fifteen times the price of the look.
  const livingOf = engine.prepare<Pick<CredentialRow, 'id' | 'backend' | 'expires_at' | 'created_at'>>(
    "SELECT id, backend, expires_at, created_at FROM credentials WHERE agent_id = ? AND ended_at IS NULL AND state = 'active' AND expires_at > ? AND id > ? ORDER BY id LIMIT (? + 0)",
  )
  const byId = engine.prepare<CredentialRow>('SELECT * FROM credentials WHERE id = ?')
  const countLiving = engine.prepare<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT 1 FROM credentials WHERE agent_id = ? AND ended_at IS NULL LIMIT (? + 0)) AS found',
  )
  return {
    find: async (id: string): Promise<CredentialRow | undefined> => (await byId([id]))[0],
    findAll: (ids: readonly string[]): Promise<CredentialRow[]> =>
      ids.length === 0
        ? Promise.resolve([])
        : read<CredentialRow>(build.selectFrom('credentials').selectAll().where('id', 'in', ids)),
    /** Active at `now`, oldest first, those after `cursor`. */
    livingOf: (agentId: string, now: number, cursor: string, limit: number) =>
      livingOf([agentId, now, cursor, limit]),
    /** Counts no further than `atMost`. */
    countLiving: async (agentId: string, atMost: number): Promise<number> =>
      (await countLiving([agentId, atMost]))[0]?.n ?? 0,
    countOpenOfBackend: (backendUid: string, atMost: number): Promise<number> =>
      countRows(
        engine,
        build
          .selectFrom('credentials')
          .select('id')
          .where('backend_uid', '=', backendUid)
          .where('due_at', 'is not', null)
          .limit(atMost),
      ),
    /** Ids of active ones that have not expired: those that would live longest first, which what is ended is not among. */
    activeOfBackend: async (backendUid: string, now: number, limit: number): Promise<string[]> => {
      const active = build
        .selectFrom('credentials')
        .select('id')
        .where('backend_uid', '=', backendUid)
        .where('due_at', '>', now)
        .where('state', '=', 'active')
        .where('expires_at', '>', now)
      return (await read<{ id: string }>(active.orderBy('due_at', 'desc').limit(limit))).map((row) => row.id)
    },
    /** Newest first, those before `cursor`. */
    list: (cursor: string | undefined, limit: number): Promise<CredentialRow[]> => {
      let query = build.selectFrom('credentials').selectAll()
      if (cursor !== undefined) query = query.where('id', '<', cursor)
      return read<CredentialRow>(query.orderBy('id', 'desc').limit(limit))
    },
    /** Ids of those that were done with before `time`, the first ones first. */
    oldestSettled: async (time: number, limit: number): Promise<string[]> => {
      const settled = build.selectFrom('credentials').select('id').where('settled_at', '<', time)
      return (await read<{ id: string }>(settled.orderBy('settled_at').limit(limit))).map((row) => row.id)
    },
  }
}

function credentialSteps({ build }: Engine) {
  const from = (id: string, state: string) =>
    build.updateTable('credentials').where('id', '=', id).where('state', '=', state)
  return {
    activate: (id: string, set: Activation): Step =>
      run(from(id, 'pending').set({ ...set, state: 'active' }), 1),
    fail: (id: string, now: number): Step =>
      run(from(id, 'pending').set({ state: 'failed', ended_at: now, settled_at: now, due_at: null }), 1),
    /** `pending → revoking`: the outcome of the issue is unknown, or it could not be kept, or is not wanted any more. */
    interrupt: (
      id: string,
      now: number,
      dueAt: number,
      handle: string | null,
      reason: EndReason = 'interrupted',
    ): Step =>
      run(
        from(id, 'pending').set({
          state: 'revoking',
          end_reason: reason,
          ended_at: now,
          due_at: dueAt,
          handle,
          attempts: 0,
        }),
        1,
      ),
    /** `revoked → revoking`: what was taken for interrupted, and settled, may have come into being upstream after that. */
    reopen: (id: string, dueAt: number, handle: string | null): Step =>
      run(
        from(id, 'revoked').set({ state: 'revoking', settled_at: null, due_at: dueAt, handle, attempts: 0 }),
        1,
      ),
    endActive: (id: string, reason: EndReason, now: number, dueAt: number): Step =>
      run(
        from(id, 'active').set({
          state: 'revoking',
          end_reason: reason,
          ended_at: now,
          due_at: dueAt,
          attempts: 0,
        }),
        1,
      ),
    /** For what has nothing to be revoked upstream. */
    finishActive: (id: string, state: 'revoked' | 'expired', reason: EndReason, now: number): Step =>
      run(
        from(id, 'active').set({
          state,
          end_reason: reason,
          ended_at: reason === 'expired' ? sql`expires_at` : now,
          settled_at: now,
          due_at: null,
          handle: null,
        }),
        1,
      ),
  }
}

/** The way of a credential that is `revoking`, and the end of its row. */
function settlingSteps({ build }: Engine) {
  const revoking = (id: string) =>
    build.updateTable('credentials').where('id', '=', id).where('state', '=', 'revoking')
  return {
    settle: (id: string, state: 'revoked' | 'expired', now: number): Step =>
      run(revoking(id).set({ state, settled_at: now, due_at: null, stuck_at: null, handle: null }), 1),
    /** What another process of ours had in hand when it died is due at once. Where one process alone may write. */
    voidClaims: (now: number): Step =>
      run(
        build
          .updateTable('credentials')
          .set({ due_at: now })
          // The first condition is the index's own: without it SQLite would read every row.
          .where(sql<boolean>`state IN ('pending', 'revoking')`)
          .where('state', '=', 'revoking')
          .where('attempts', '=', 0)
          .where('due_at', '>', now),
        'any',
      ),
    drop: (ids: readonly string[]): Step =>
      run(build.deleteFrom('credentials').where('id', 'in', ids), 'any'),
    postpone: (id: string, attempts: number, dueAt: number, stuckAt: number | null): Step =>
      run(revoking(id).set({ attempts, due_at: dueAt, stuck_at: stuckAt }), 1),
  }
}

function dueReads(engine: Engine) {
  const { build, read } = engine
  const dueOf = (backendUid: string, now: number, limit: number) =>
    build
      .selectFrom('credentials')
      .where('backend_uid', '=', backendUid)
      .where('due_at', '<=', now)
      .orderBy('due_at')
      .limit(limit)
  const expired = engine.prepare<{ id: string }>(
    `SELECT id FROM credentials WHERE backend_uid = ? AND due_at <= ? AND state = 'active' ORDER BY due_at LIMIT (? + 0)${
      engine.dialect === 'sqlite' ? '' : ' FOR UPDATE SKIP LOCKED'
    }`,
  )
  return {
    /** Ids of the active ones due at `now`, earliest first; on PostgreSQL without those that another node is ending. */
    expired: async (backendUid: string, now: number, limit: number): Promise<string[]> =>
      (await expired([backendUid, now, limit])).map(({ id }) => id),
    /** Due at `now`, earliest first. On PostgreSQL they are claimed: no other node is given them for a while. */
    takeDue: async (backendUid: string, now: number, limit: number): Promise<CredentialRow[]> => {
      const due = dueOf(backendUid, now, limit)
      if (engine.dialect === 'sqlite') return read<CredentialRow>(due.selectAll())
      const claimed = await read<CredentialRow & { was_due_at: number }>(
        build
          .with('due', () => due.select(['id', 'due_at as was_due_at']).forUpdate().skipLocked())
          .updateTable('credentials')
          .from('due')
          .set({ due_at: now + CLAIM_MS })
          .whereRef('credentials.id', '=', 'due.id')
          .returningAll('credentials')
          .returning('due.was_due_at'),
      )
      // RETURNING keeps no order.
      claimed.sort((one, other) => one.was_due_at - other.was_due_at)
      return claimed.map(({ was_due_at, ...row }) => ({ ...row, due_at: was_due_at }))
    },
    /** When the earliest falls due, and how many wait on an upstream or are stuck. */
    backlog: async (
      backendUid: string,
    ): Promise<{ open: number; unsettled: number; stuck: number; earliest: number | null }> => {
      const of = () => build.selectFrom('credentials').where('backend_uid', '=', backendUid)
      const [open, unsettled, stuck] = await Promise.all([
        read<{ n: number; earliest: number | null }>(
          of()
            .where('due_at', 'is not', null)
            .select((e) => [e.fn.countAll<number>().as('n'), e.fn.min('due_at').as('earliest')]),
        ),
        read<{ n: number }>(
          of()
            .where(sql<boolean>`state IN ('pending', 'revoking')`)
            .select((e) => e.fn.countAll<number>().as('n')),
        ),
        read<{ n: number }>(
          of()
            .where('stuck_at', 'is not', null)
            .select((e) => e.fn.countAll<number>().as('n')),
        ),
      ])
      return {
        open: open[0]?.n ?? 0,
        unsettled: unsettled[0]?.n ?? 0,
        stuck: stuck[0]?.n ?? 0,
        earliest: open[0]?.earliest ?? null,
      }
    },
  }
}
