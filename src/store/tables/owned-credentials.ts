import { type AgentEndReason, endOfCredentials } from '../../domain/agent.ts'
import type { Credential } from '../../domain/credential.ts'
import type { Engine } from '../engine/engine.ts'
import type { CredentialRow } from '../schema/rows.ts'
import { toCredential } from './credential-rows.ts'

/** A credential with what it grants. */
export type ScopedCredential = Pick<Credential, 'id' | 'backend' | 'scopes' | 'expiresAt'>

/** Credentials as they are shown, and as they are looked up to be ended. */
export function ownedReads(engine: Engine) {
  const { build, read } = engine
  const byId = engine.prepare<OwnedRow>(
    'SELECT c.*, a.ended_at AS agent_ended_at, a.end_reason AS agent_end_reason FROM credentials AS c LEFT JOIN agents AS a ON a.id = c.agent_id AND c.ended_at IS NULL WHERE c.id = ?',
  )
  /** With the end of its agent, which is the end of a credential that has not ended yet. */
  const owned = () =>
    build
      .selectFrom('credentials')
      .leftJoin('agents', (join) =>
        join.onRef('agents.id', '=', 'credentials.agent_id').on('credentials.ended_at', 'is', null),
      )
      .selectAll('credentials')
      .select(['agents.ended_at as agent_ended_at', 'agents.end_reason as agent_end_reason'])
  return {
    find: async (id: string): Promise<Credential | undefined> => {
      const [row] = await byId([id])
      return row === undefined ? undefined : toOwnedCredential(row)
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

/** A row with the end of its agent, where the credential itself has not ended. */
type OwnedRow = CredentialRow & {
  readonly agent_ended_at: number | null
  readonly agent_end_reason: string | null
}

/**
 * A credential ends with its agent for every reader, also while the rows of an agent with very many credentials are
 * still being written (ADR 0023). One that had expired by then stays expired.
 */
function toOwnedCredential(row: OwnedRow): Credential {
  const credential = toCredential(row)
  const { agent_ended_at: endedAt, agent_end_reason: how } = row
  const { state, expiresAt, revocation } = credential
  if (endedAt === null || how === null || (state !== 'active' && state !== 'pending')) return credential
  if (state === 'active' && expiresAt <= endedAt) return credential
  const isDone = state === 'active' && revocation !== 'exact'
  return {
    ...credential,
    state: isDone ? 'revoked' : 'revoking',
    endReason: endOfCredentials(how as AgentEndReason),
    endedAt,
    settledAt: isDone ? endedAt : credential.settledAt,
  }
}
