import { sql } from 'kysely'
import type { Activation, Credential, EndReason, State } from '../../domain/credential.ts'
import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { CredentialRow } from '../schema/rows.ts'
import { ofRuns } from './among.ts'
import { codecs } from './codecs.ts'
import { backlogReads, dueReads, dueScans, ofEndedRuns } from './due-credentials.ts'
import { type EndedBy, endAll, endLate, endSome, expireAll, type Owner } from './end-all.ts'
import { openReads, ownedReads } from './owned-credentials.ts'

const { credentials } = codecs

/** An active credential in the form that its agent sees. */
export type LivingCredential = Pick<Credential, 'id' | 'backend' | 'expiresAt' | 'createdAt'>

/** Until when ending a credential upstream waits, and what its last try said. */
export type Delay = Pick<Credential, 'attempts' | 'stuckAt' | 'failure'> & { readonly dueAt: number }

/** Whose credentials have ended, while their rows do not say so yet (ADR 0023). */
export type Ended = { readonly agentId: string } | { readonly runId: string }

export interface RevokedRow {
  readonly id: string
  /** Epoch ms. */
  readonly endedAt: number
}

export function createCredentials(engine: Engine) {
  return {
    ...credentialReads(engine),
    ...ownedReads(engine),
    ...openReads(engine),
    ...revokedReads(engine),
    ...issueSteps(engine),
    ...endSteps(engine),
    ...settlingSteps(engine),
    ...dueReads(engine),
    ...ofEndedRuns(engine),
    ...dueScans(engine),
    ...backlogReads(engine),
    endAll: (owner: Owner, reason: EndReason, now: number, by: EndedBy): Step[] =>
      endAll(engine, owner, reason, now, by),
    endSome: (ids: readonly string[], reason: EndReason, now: number, by: EndedBy): Step[] =>
      endSome(engine, ids, reason, now, by),
    endLate: (ids: readonly string[], ending: Parameters<typeof endLate>[2]): Step[] =>
      endLate(engine, ids, ending),
    expireAll: (ids: readonly string[], now: number, by: EndedBy): Step[] => expireAll(engine, ids, now, by),
  }
}

function ownedBy(engine: Engine, owner: Ended) {
  return 'agentId' in owner ? sql<boolean>`agent_id = ${owner.agentId}` : ofRuns(engine, [owner.runId])
}

function credentialReads(engine: Engine) {
  const { build, read } = engine
  // SQLite recompiles a statement when a bare parameter of LIMIT is bound, which costs 15 times the look-up itself.
  const livingOf = engine.prepare<Pick<CredentialRow, 'id' | 'backend' | 'expires_at' | 'created_at'>>(
    "SELECT id, backend, expires_at, created_at FROM credentials WHERE agent_id = ? AND ended_at IS NULL AND state = 'active' AND expires_at > ? AND id > ? AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id AND runs.ended_at IS NOT NULL) ORDER BY id LIMIT (? + 0)",
  )
  const countLiving = engine.prepare<{ n: number }>(
    'SELECT count(*) AS n FROM (SELECT 1 FROM credentials WHERE agent_id = ? AND ended_at IS NULL LIMIT (? + 0)) AS found',
  )
  return {
    /** Active at `now`, oldest first, after `cursor`. */
    livingOf: async (
      agentId: string,
      now: number,
      cursor: string,
      limit: number,
    ): Promise<LivingCredential[]> =>
      (await livingOf([agentId, now, cursor, limit])).map((row) => ({
        id: row.id,
        backend: row.backend,
        expiresAt: row.expires_at,
        createdAt: row.created_at,
      })),
    /** Counts no further than `atMost`. */
    countLiving: async (agentId: string, atMost: number): Promise<number> =>
      (await countLiving([agentId, atMost]))[0]?.n ?? 0,
    /** How many credentials of these runs have not ended, for those that have any. */
    countLivingOfRuns: async (runIds: readonly string[]): Promise<Map<string, number>> => {
      const counts = build
        .selectFrom('credentials')
        .select(['run_id as id', (e) => e.fn.countAll<number>().as('n')])
        .where(ofRuns(engine, runIds))
        .where('ended_at', 'is', null)
        .groupBy('run_id')
      const rows = await read<{ id: string | null; n: number }>(counts)
      return new Map(rows.map(({ id, n }) => [id ?? '', n]))
    },
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
    /** Active, unexpired ids, latest expiry first. */
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
    /** Ids of an agent's or a run's credentials that had neither ended nor expired when it ended at `endedAt`. */
    leftOf: async (owner: Ended, endedAt: number, limit: number): Promise<string[]> => {
      const left = build
        .selectFrom('credentials')
        .select('id')
        .where(ownedBy(engine, owner))
        .where('ended_at', 'is', null)
        .where((e) => e.or([e('state', '<>', 'active'), e('expires_at', '>', endedAt)]))
      return (await read<{ id: string }>(left.orderBy('id').limit(limit))).map((row) => row.id)
    },
    /** Ids of credentials settled before `time`, earliest first. */
    oldestSettled: async (time: number, limit: number): Promise<string[]> => {
      const settled = build.selectFrom('credentials').select('id').where('settled_at', '<', time)
      return (await read<{ id: string }>(settled.orderBy('settled_at').limit(limit))).map((row) => row.id)
    },
  }
}

/** Credentials without an upstream that were revoked and have not expired: any number, so in slices. */
function revokedReads(engine: Engine) {
  const { build, scan } = engine
  const livingAt = (backendUid: string, now: number) =>
    build.selectFrom('credentials').where('backend_uid', '=', backendUid).where('expires_at', '>', now)
  return {
    revokedOfBackend: (backendUid: string, now: number): AsyncIterable<RevokedRow[]> => {
      const revoked = livingAt(backendUid, now)
        .select(['id', 'ended_at as endedAt'])
        // Written as in the index: with bare parameters the planner would not see that it fits.
        .where(sql<boolean>`state = 'revoked' AND revocation = 'none'`)
      return scan<RevokedRow>(revoked)
    },
    /** Those that have ended with their agent or run, whose rows do not say so yet (ADR 0023). */
    unfinishedOfBackend: (
      backendUid: string,
      now: number,
      owner: Ended,
    ): AsyncIterable<{ readonly id: string }[]> =>
      scan(
        livingAt(backendUid, now)
          .select('id')
          .where(ownedBy(engine, owner))
          .where('ended_at', 'is', null)
          .where(sql<boolean>`state = 'active' AND revocation = 'none'`),
      ),
  }
}

/** A statement for one credential, if it is in one of these states. */
function updateFrom({ build }: Engine, id: string, ...states: State[]) {
  return build.updateTable('credentials').where('id', '=', id).where('state', 'in', states)
}

function issueSteps(engine: Engine) {
  return {
    insert: (credential: Credential): Step => insert('credentials', credentials.encode(credential)),
    /** Refused when the credential or its agent has ended. */
    activate: (id: string, { expiresAt, upstreamExpiresAt, secretHash, sealedHandle }: Activation): Step =>
      run(
        updateFrom(engine, id, 'pending')
          .set({
            state: 'active',
            expires_at: expiresAt,
            upstream_expires_at: upstreamExpiresAt,
            due_at: expiresAt,
            secret_hash: secretHash,
            handle: sealedHandle,
          })
          .where(
            sql<boolean>`NOT EXISTS (SELECT 1 FROM agents WHERE agents.id = agent_id AND agents.ended_at IS NOT NULL)`,
          ),
        1,
      ),
    /** Nothing was issued. Leaves a credential alone that has ended in the meantime. */
    fail: (id: string, now: number): Step =>
      run(
        updateFrom(engine, id, 'pending').set({
          state: 'failed',
          ended_at: now,
          settled_at: now,
          due_at: null,
        }),
        'any',
      ),
    /**
     * The issue failed after its upstream was called: an account there must go, in every state of the record. Does
     * nothing to a credential that is being revoked already. The first end and its reason stay. A row that is gone,
     * because a replica that lagged took over, is written again. One that was settled at `certain` or later stays: by then
     * the account was visible, or could no longer appear.
     */
    reclaim: (
      credential: Credential,
      { now, dueAt, certain }: { readonly now: number; readonly dueAt: number; readonly certain: number },
      sealedHandle: string | null,
    ): Step => {
      const ended = { state: 'revoking', due_at: dueAt, handle: sealedHandle, attempts: 0 } as const
      const row = { ...credentials.encode(credential), ...ended, end_reason: 'interrupted', ended_at: now }
      const insert = engine.build.insertInto('credentials').values(row)
      return run(
        insert.onConflict((conflict) =>
          conflict
            .column('id')
            .doUpdateSet({
              ...ended,
              end_reason: sql`coalesce(credentials.end_reason, 'interrupted')`,
              ended_at: sql`coalesce(credentials.ended_at, cast(${now} as bigint))`,
              settled_at: null,
            })
            .where('credentials.state', 'in', ['pending', 'active', 'revoked'])
            .where((e) =>
              e.or([e('credentials.settled_at', 'is', null), e('credentials.settled_at', '<', certain)]),
            ),
        ),
        'any',
      )
    },
  }
}

function endSteps(engine: Engine) {
  return {
    /** To `revoking`. From `pending`, the upstream may still be at work. */
    beginRevoking: (
      id: string,
      from: 'pending' | 'active',
      reason: EndReason,
      endedAt: number,
      dueAt: number,
    ): Step =>
      run(
        updateFrom(engine, id, from).set({
          state: 'revoking',
          end_reason: reason,
          ended_at: endedAt,
          due_at: dueAt,
          attempts: 0,
        }),
        1,
      ),
    /** For a credential that cannot be revoked upstream. */
    finishActive: (id: string, state: 'revoked' | 'expired', reason: EndReason, now: number): Step =>
      run(
        updateFrom(engine, id, 'active').set({
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

/** For credentials that are `revoking`, and for the end of the row. */
function settlingSteps({ build }: Engine) {
  const revoking = (id: string) =>
    build.updateTable('credentials').where('id', '=', id).where('state', '=', 'revoking')
  /** Those that wait for `due_at`, due at once. */
  const due = (now: number) =>
    build
      .updateTable('credentials')
      .set({ due_at: now })
      // The first condition is that of the index: without it SQLite would read every row.
      .where(sql<boolean>`state IN ('pending', 'revoking')`)
      .where('state', '=', 'revoking')
      .where('due_at', '>', now)
  return {
    settle: (id: string, state: 'revoked' | 'expired', now: number): Step =>
      run(
        revoking(id).set({
          state,
          settled_at: now,
          due_at: null,
          stuck_at: null,
          handle: null,
          failure: null,
        }),
        1,
      ),
    /** Makes the claims of a dead process due at once. Only for a store with a single process. */
    voidClaims: (now: number): Step => run(due(now).where('attempts', '=', 0), 'any'),
    /** Makes credentials of this backend that wait after a failure due at once. */
    wake: (backendUid: string, now: number): Step =>
      run(due(now).where('backend_uid', '=', backendUid).where('attempts', '>', 0), 'any'),
    drop: (ids: readonly string[]): Step =>
      run(build.deleteFrom('credentials').where('id', 'in', ids), 'any'),
    postpone: (id: string, { attempts, dueAt, stuckAt, failure }: Delay): Step =>
      run(revoking(id).set({ attempts, due_at: dueAt, stuck_at: stuckAt, failure }), 1),
  }
}
