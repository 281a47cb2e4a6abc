import { sql } from 'kysely'
import type { Credential } from '../../domain/credential.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { CredentialRow } from '../schema/rows.ts'
import { among, ofRuns } from './among.ts'
import { codecs } from './codecs.ts'
import { countUnsettled, type Unended } from './counts.ts'

/** Claims in a row that another node may win. */
const CLAIM_TRIES = 8

/** Credentials that the sweeper must look at. */
export function dueReads(engine: Engine) {
  const { build, read } = engine
  const dueOf = (backendUid: string, now: number, limit: number) =>
    build
      .selectFrom('credentials')
      .selectAll()
      .where('backend_uid', '=', backendUid)
      .where('due_at', '<=', now)
      .orderBy('due_at')
      .limit(limit)
  const claim = (ids: readonly string[], now: number, claimedUntil: number) =>
    build
      .updateTable('credentials')
      .set({ due_at: claimedUntil })
      .where('id', 'in', ids)
      .where('due_at', '<=', now)
  const expired = engine.prepare<{ id: string }>(
    `SELECT id FROM credentials WHERE backend_uid = ? AND due_at <= ? AND state = 'active' ORDER BY due_at LIMIT (? + 0)${
      engine.hasOtherNodes ? ' FOR UPDATE SKIP LOCKED' : ''
    }`,
  )
  return {
    /** As `takeDue`, for those of `ids` that are due: on PostgreSQL all of them, or none. */
    takeThese: async (ids: readonly string[], now: number, claimedUntil: number): Promise<Credential[]> => {
      const due = build
        .selectFrom('credentials')
        .selectAll()
        .where('id', 'in', ids)
        .where('due_at', '<=', now)
      const rows = await read<CredentialRow>(due)
      if (rows.length === 0 || !engine.hasOtherNodes) return rows.map(codecs.credentials.decode)
      const found = rows.map(({ id }) => id)
      const { done } = await engine.commit([run(claim(found, now, claimedUntil), found.length)], {
        urgent: true,
      })
      return done ? rows.map(codecs.credentials.decode) : []
    },
    /** Ends the claims of `ids`. */
    release: (ids: readonly string[], now: number): Step =>
      run(
        build
          .updateTable('credentials')
          .set({ due_at: now })
          .where('id', 'in', ids)
          .where('due_at', '>', now),
        'any',
      ),
    /** Ids of active credentials due at `now`, earliest first; on PostgreSQL without those that another node is ending. */
    expired: async (backendUid: string, now: number, limit: number): Promise<string[]> =>
      (await expired([backendUid, now, limit])).map(({ id }) => id),
    /** Due at `now`, earliest first. On PostgreSQL they are claimed: no other node gets them before `claimedUntil`. */
    takeDue: async (
      backendUid: string,
      now: number,
      claimedUntil: number,
      limit: number,
    ): Promise<Credential[]> => {
      const due = dueOf(backendUid, now, limit)
      if (!engine.hasOtherNodes) return (await read<CredentialRow>(due)).map(codecs.credentials.decode)
      for (let tries = 0; tries < CLAIM_TRIES; tries += 1) {
        const rows = await read<CredentialRow>(due.forUpdate().skipLocked())
        if (rows.length === 0) return []
        const ids = rows.map(({ id }) => id)
        const { done } = await engine.commit([run(claim(ids, now, claimedUntil), ids.length)], {
          urgent: true,
        })
        if (done) return rows.map(codecs.credentials.decode)
        // Another node has claimed one of them since: look for others.
      }
      return []
    },
  }
}

/** Credentials that the request settles which ends their run. */
export function ofEndedRuns(engine: Engine) {
  const { build, read } = engine
  const ended = (ids: readonly string[]) =>
    sql<boolean>`${among(engine, ids)} AND state = 'revoking' AND end_reason = 'run_ended'`
  return {
    /** Ids of active credentials of a run that end by a call of their upstream, oldest first. */
    exactOfRun: async (runId: string, limit: number): Promise<string[]> => {
      const exact = build
        .selectFrom('credentials')
        .select('id')
        .where(ofRuns(engine, [runId]))
        .where('ended_at', 'is', null)
        .where('state', '=', 'active')
        .where('revocation', '=', 'exact')
      return (await read<{ id: string }>(exact.orderBy('id').limit(limit))).map((row) => row.id)
    },
    /** Claims those of `ids` that have ended with their run. Place it after the step that ends them. */
    claimOfRun: (ids: readonly string[], claimedUntil: number): Step =>
      run(build.updateTable('credentials').set({ due_at: claimedUntil }).where(ended(ids)), 'any'),
    /** Those of `ids` that have ended with their run and wait for their upstream. */
    unsettledOfRun: async (ids: readonly string[]): Promise<Credential[]> => {
      const unsettled = build.selectFrom('credentials').selectAll().where(ended(ids))
      return (await read<CredentialRow>(unsettled)).map(codecs.credentials.decode)
    },
  }
}

/** Backends and agents that have something due. */
export function dueScans(engine: Engine) {
  const scan = engine.prepare<Pick<CredentialRow, 'id' | 'agent_id'>>(
    'SELECT id, agent_id FROM credentials WHERE backend_uid = ? AND due_at <= ? ORDER BY due_at LIMIT (? + 0) OFFSET (? + 0)',
  )
  const dueAmong = engine.prepare<{ uid: string }>(
    `SELECT value AS uid FROM ${
      engine.dialect === 'sqlite' ? 'json_each(?)' : 'json_array_elements_text(?::json)'
    } WHERE EXISTS (SELECT 1 FROM credentials WHERE backend_uid = value AND due_at <= ?)`,
  )
  return {
    /** Which of these backends have something due at `now`: one query, however many there are. */
    dueBackends: async (backendUids: readonly string[], now: number): Promise<Set<string>> =>
      new Set((await dueAmong([JSON.stringify(backendUids), now])).map(({ uid }) => uid)),
    /** Credentials due at `now`, earliest first, without the first `from`. */
    scanDue: async (
      backendUid: string,
      now: number,
      from: number,
      limit: number,
    ): Promise<Pick<Credential, 'id' | 'agentId'>[]> =>
      (await scan([backendUid, now, limit, from])).map(({ id, agent_id: agentId }) => ({ id, agentId })),
  }
}

/** How much is open, for the metrics and the sweeper. */
export function backlogReads(engine: Engine) {
  const { build, read } = engine
  return {
    /** Credentials that have ended and whose upstream was not seen to be clean, by backend: how many, and when the first ended. */
    unended: async (): Promise<Map<string, Unended>> => {
      const all = await countUnsettled(engine, 0)
      return new Map(
        [...all].flatMap(([uid, { unended }]) => (unended === undefined ? [] : [[uid, unended]])),
      )
    },
    /** When the earliest is due, and how many are open, wait for their upstream, or are stuck. */
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
