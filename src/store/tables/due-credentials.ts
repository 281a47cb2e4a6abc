import { sql } from 'kysely'
import type { Credential } from '../../domain/credential.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { CredentialRow } from '../schema/rows.ts'
import { toCredential } from './credential-rows.ts'

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
      engine.dialect === 'sqlite' ? '' : ' FOR UPDATE SKIP LOCKED'
    }`,
  )
  return {
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
      if (engine.dialect === 'sqlite') return (await read<CredentialRow>(due)).map(toCredential)
      for (let tries = 0; tries < CLAIM_TRIES; tries += 1) {
        const rows = await read<CredentialRow>(due.forUpdate().skipLocked())
        if (rows.length === 0) return []
        const ids = rows.map(({ id }) => id)
        const { done } = await engine.commit([run(claim(ids, now, claimedUntil), ids.length)], {
          urgent: true,
        })
        if (done) return rows.map(toCredential)
        // Another node has claimed one of them since: look for others.
      }
      return []
    },
  }
}

/** How much is open, for the metrics and the sweeper. */
export function backlogReads({ build, read }: Engine) {
  return {
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
