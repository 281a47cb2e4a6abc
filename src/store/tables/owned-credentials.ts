import { type AgentEndReason, endOfCredentials } from '../../domain/agent.ts'
import type { Credential, EndReason } from '../../domain/credential.ts'
import { ID_PREFIX } from '../../domain/ids.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import type { CredentialRow } from '../schema/rows.ts'
import { among, ofRuns } from './among.ts'
import { codecs } from './codecs.ts'

const { credentials } = codecs

/** A credential with its grants. */
export type ScopedCredential = Pick<Credential, 'id' | 'backend' | 'scopes' | 'expiresAt'>

/** A credential of a run. */
export interface LivingOfRun {
  readonly id: string
  readonly runId: string
  /** Epoch ms. */
  readonly expiresAt: number
}

/** An agent's, a backend's, or both: one of them is given. */
export interface Whose {
  readonly agentId: string | undefined
  /** The name. */
  readonly backend: string | undefined
}

/** What is open: everything in this state, or one owner's part of it. */
export type OpenOf =
  | { readonly state: 'active' | 'revoking' }
  | { readonly state: 'active'; readonly agentId: string }
  | { readonly state: 'active' | 'revoking'; readonly backend: string }

/** Credentials as they are shown, and as they are looked up to be ended. */
export function ownedReads(engine: Engine) {
  const { build, read } = engine
  const byId = engine.prepare<OwnedRow>(
    'SELECT c.*, a.ended_at AS agent_ended_at, a.end_reason AS agent_end_reason, r.ended_at AS run_ended_at FROM credentials AS c LEFT JOIN agents AS a ON a.id = c.agent_id AND c.ended_at IS NULL LEFT JOIN runs AS r ON r.id = c.run_id AND c.ended_at IS NULL WHERE c.id = ?',
  )
  const owned = () => withItsAgent(engine)
  return {
    find: async (id: string): Promise<Credential | undefined> => {
      const [row] = await byId([id])
      return row === undefined ? undefined : toOwnedCredential(row)
    },
    /** Those of these ids that are credentials of the run, ended or not. */
    amongRun: async (runId: string, ids: readonly string[]): Promise<string[]> => {
      const query = build.selectFrom('credentials').select('id').where('run_id', '=', runId)
      return (await read<{ id: string }>(query.where(among(engine, ids)))).map(({ id }) => id)
    },
    /** Those that have not ended, also those whose issue is under way; `since`: body of an id, for those from there on. */
    livingOfRuns: async (runIds: readonly string[], since?: string): Promise<LivingOfRun[]> => {
      let query = build
        .selectFrom('credentials')
        .select(['id', 'run_id', 'expires_at'])
        .where(ofRuns(engine, runIds))
        .where('ended_at', 'is', null)
      if (since !== undefined) query = query.where('id', '>', `${ID_PREFIX.credential}${since}`)
      const rows = await read<Pick<CredentialRow, 'id' | 'run_id' | 'expires_at'>>(query)
      return rows.map(({ id, run_id, expires_at }) => ({ id, runId: run_id ?? '', expiresAt: expires_at }))
    },
    /** Those of these ids that have ended. */
    endedAmong: async (ids: readonly string[]): Promise<string[]> => {
      const query = build.selectFrom('credentials').select('id').where('ended_at', 'is not', null)
      return (await read<{ id: string }>(query.where(among(engine, ids)))).map(({ id }) => id)
    },
    findAll: async (ids: readonly string[]): Promise<Credential[]> =>
      ids.length === 0
        ? []
        : (await read<OwnedRow>(owned().where('credentials.id', 'in', ids))).map(toOwnedCredential),
    /** All that have neither ended nor expired, also those whose issue is under way, after `cursor`. */
    livingScopesOf: async (
      agentId: string,
      now: number,
      cursor: string,
      limit: number,
    ): Promise<ScopedCredential[]> => {
      const living = build
        .selectFrom('credentials')
        .select(['id', 'backend', 'scopes', 'expires_at'])
        .where('agent_id', '=', agentId)
        .where('ended_at', 'is', null)
        .where((e) => e.or([e('state', '<>', 'active'), e('expires_at', '>', now)]))
        .where('id', '>', cursor)
        .orderBy('id')
        .limit(limit)
      type Row = Pick<CredentialRow, 'id' | 'backend' | 'scopes' | 'expires_at'>
      return (await read<Row>(living)).map((row) => ({
        id: row.id,
        backend: row.backend,
        scopes: JSON.parse(row.scopes) as string[],
        expiresAt: row.expires_at,
      }))
    },
    /** Newest first, before `cursor`. */
    list: async (cursor: string | undefined, limit: number): Promise<Credential[]> => {
      let query = owned()
      if (cursor !== undefined) query = query.where('credentials.id', '<', cursor)
      return (await read<OwnedRow>(query.orderBy('credentials.id', 'desc').limit(limit))).map(
        toOwnedCredential,
      )
    },
  }
}

/** A row with the end of its agent and of its run, where the credential itself has not ended. */
type OwnedRow = CredentialRow & {
  readonly agent_ended_at: number | null
  readonly agent_end_reason: string | null
  readonly run_ended_at: number | null
}

/**
 * A credential ends with its agent and its run for every reader, also while the rows of one with very many credentials are
 * still being written (ADR 0023). One that had expired by then stays expired.
 */
function toOwnedCredential(row: OwnedRow): Credential {
  const credential = credentials.decode(row)
  const [endedAt, endReason] = endOfOwner(row)
  const { state, expiresAt, revocation } = credential
  if (endedAt === null || (state !== 'active' && state !== 'pending')) return credential
  if (state === 'active' && expiresAt <= endedAt) return credential
  const isDone = state === 'active' && revocation !== 'exact'
  return {
    ...credential,
    state: isDone ? 'revoked' : 'revoking',
    endReason,
    endedAt,
    settledAt: isDone ? endedAt : credential.settledAt,
  }
}

/** The first of the two. */
function endOfOwner(row: OwnedRow): [endedAt: number | null, reason: EndReason] {
  const { agent_ended_at: ofAgent, agent_end_reason: how, run_ended_at: ofRun } = row
  if (ofAgent === null || how === null || (ofRun !== null && ofRun < ofAgent)) return [ofRun, 'run_ended']
  return [ofAgent, endOfCredentials(how as AgentEndReason)]
}

/** Credentials that live, or that have ended and are not settled. */
export function openReads(engine: Engine) {
  const { read } = engine
  const countLivingOfEach = engine.prepare<{ id: string; n: number }>(
    `SELECT value AS id, (SELECT count(*) FROM (SELECT 1 FROM credentials WHERE agent_id = value AND ended_at IS NULL LIMIT (? + 0)) AS found) AS n FROM ${
      engine.dialect === 'sqlite' ? 'json_each(?)' : 'json_array_elements_text(?::json)'
    }`,
  )
  return {
    /**
     * Newest first, before `cursor`: those that are active, also if they have expired since, or those that have ended and
     * that their upstream may still accept; all, an agent's active ones, or a backend's. Each case reads one index in its
     * order, so that no page reads more rows than it has.
     */
    listOpen: async (
      { state, ...of }: OpenOf,
      cursor: string | undefined,
      limit: number,
    ): Promise<Credential[]> => {
      let query = withItsAgent(engine).where('state', '=', state)
      query =
        'agentId' in of
          ? query.where('credentials.agent_id', '=', of.agentId).where('credentials.ended_at', 'is', null)
          : query.where('credentials.settled_at', 'is', null)
      if ('backend' in of) query = query.where('credentials.backend', '=', of.backend)
      if (cursor !== undefined) query = query.where('credentials.id', '<', cursor)
      return (await read<OwnedRow>(query.orderBy('credentials.id', 'desc').limit(limit))).map(
        toOwnedCredential,
      )
    },
    /** Ids of those that have neither ended nor expired, also those whose issue is under way. */
    livingIdsOf: async (whose: Whose, now: number, limit: number): Promise<string[]> => {
      const living = livingOfBoth(engine, whose, now)
      return (await read<{ id: string }>(living.limit(limit))).map((row) => row.id)
    },
    /** For each of these agents, how many have not ended, no further than `atMost`. */
    countLivingOfEach: async (agentIds: readonly string[], atMost: number): Promise<Map<string, number>> => {
      const rows = await countLivingOfEach([atMost, JSON.stringify(agentIds)])
      return new Map(rows.map(({ id, n }) => [id, n]))
    },
    countLivingOf: (whose: Whose, now: number, atMost: number): Promise<number> =>
      countRows(engine, livingOfBoth(engine, whose, now).limit(atMost)),
  }
}

/** By the agent's index, or else by that of the backend. */
function livingOfBoth({ build }: Engine, { agentId, backend }: Whose, now: number) {
  const living = build
    .selectFrom('credentials')
    .select('id')
    .where('state', 'in', ['pending', 'active'])
    .where((e) => e.or([e('state', '=', 'pending'), e('expires_at', '>', now)]))
  const ofBackend = backend === undefined ? living : living.where('backend', '=', backend)
  return agentId === undefined
    ? ofBackend.where('settled_at', 'is', null)
    : ofBackend.where('agent_id', '=', agentId).where('ended_at', 'is', null)
}

/** With the end of its agent and its run, which also ends a credential that has not ended yet. */
function withItsAgent({ build }: Engine) {
  return build
    .selectFrom('credentials')
    .leftJoin('agents', (join) =>
      join.onRef('agents.id', '=', 'credentials.agent_id').on('credentials.ended_at', 'is', null),
    )
    .leftJoin('runs', (join) =>
      join.onRef('runs.id', '=', 'credentials.run_id').on('credentials.ended_at', 'is', null),
    )
    .selectAll('credentials')
    .select([
      'agents.ended_at as agent_ended_at',
      'agents.end_reason as agent_end_reason',
      'runs.ended_at as run_ended_at',
    ])
}
