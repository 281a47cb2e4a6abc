import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { AgentGrantRow, AgentRow, SigningKeyRow } from '../schema/rows.ts'

export type AgentWithUse = AgentRow & { last_used_at: number | null }

/** Agents, their extra grants, their last use and their signing keys. */
export function createAgents(engine: Engine) {
  return { ...agentReads(engine), ...signingKeyReads(engine), ...agentSteps(engine) }
}

async function first<R>(rows: Promise<R[]>): Promise<R | undefined> {
  return (await rows)[0]
}

function agentReads(engine: Engine) {
  const { build, read } = engine
  const living = () => build.selectFrom('agents').selectAll().where('ended_at', 'is', null)
  return {
    findByBearer: (hash: string): Promise<AgentRow | undefined> =>
      first(read(living().where('bearer_hash', '=', hash))),
    findByClient: (clientId: string): Promise<AgentRow | undefined> =>
      first(read(living().where('client_id', '=', clientId))),
    findLiving: (id: string): Promise<AgentRow | undefined> => first(read(living().where('id', '=', id))),
    findByName: (nameKey: string): Promise<AgentRow | undefined> =>
      first(read(living().where('name_key', '=', nameKey))),
    /** Whoever had this name last, ended or not: a name is given again only when nobody has it. */
    lastNamed: async (nameKey: string): Promise<string | undefined> => {
      const named = build.selectFrom('agents').select('id').where('name_key', '=', nameKey)
      return (await read<{ id: string }>(named.orderBy('id', 'desc').limit(1)))[0]?.id
    },

    /** Oldest first, those after `cursor` (an id). */
    list: (cursor: string | undefined, limit: number): Promise<AgentWithUse[]> => {
      let query = build
        .selectFrom('agents')
        .leftJoin('agent_uses', 'agent_uses.agent_id', 'agents.id')
        .selectAll('agents')
        .select('agent_uses.last_used_at')
        .where('ended_at', 'is', null)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      return read<AgentWithUse>(query.orderBy('id').limit(limit))
    },
    lastUsed: async (id: string): Promise<number | null> =>
      (
        await first(
          read<{ last_used_at: number }>(
            build.selectFrom('agent_uses').select('last_used_at').where('agent_id', '=', id),
          ),
        )
      )?.last_used_at ?? null,
    countByPolicy: (policy: string): Promise<number> =>
      countRows(
        engine,
        build.selectFrom('agents').select('id').where('policy', '=', policy).where('ended_at', 'is', null),
      ),
    expired: (now: number, limit: number): Promise<AgentRow[]> =>
      read<AgentRow>(living().where('expires_at', '<=', now).orderBy('expires_at').limit(limit)),
    /** Ids of those that ended before `time`, the first ones first. */
    oldestEnded: async (time: number, limit: number): Promise<string[]> => {
      const ended = build.selectFrom('agents').select('id').where('ended_at', '<', time)
      return (await read<{ id: string }>(ended.orderBy('ended_at').limit(limit))).map((row) => row.id)
    },
    grantsOf: (id: string): Promise<AgentGrantRow[]> =>
      read<AgentGrantRow>(build.selectFrom('agent_grants').selectAll().where('agent_id', '=', id)),
    grantsOfAll: (ids: readonly string[]): Promise<AgentGrantRow[]> =>
      ids.length === 0
        ? Promise.resolve([])
        : read<AgentGrantRow>(build.selectFrom('agent_grants').selectAll().where('agent_id', 'in', ids)),
    expiredGrants: (now: number, limit: number): Promise<AgentGrantRow[]> =>
      read<AgentGrantRow>(
        build.selectFrom('agent_grants').selectAll().where('expires_at', '<=', now).limit(limit),
      ),
  }
}

function signingKeyReads({ build, read }: Engine) {
  return {
    signingKeyOf: (agentId: string): Promise<SigningKeyRow | undefined> =>
      first(
        read<SigningKeyRow>(build.selectFrom('signing_keys').selectAll().where('agent_id', '=', agentId)),
      ),
    listSigningKeys: (cursor: string | undefined, limit: number): Promise<SigningKeyRow[]> => {
      let query = build.selectFrom('signing_keys').selectAll().where('ended_at', 'is', null)
      if (cursor !== undefined) query = query.where('agent_id', '>', cursor)
      return read<SigningKeyRow>(query.orderBy('agent_id').limit(limit))
    },
  }
}

function agentSteps({ build }: Engine) {
  return {
    /** Ends the agent and its private key. Everything that a cached caller knows of it is stale with the commit. */
    end: (id: string, reason: string, now: number): Step[] => [
      run(
        build
          .updateTable('agents')
          .set((e) => ({ ended_at: now, end_reason: reason, version: e('version', '+', 1) }))
          .where('id', '=', id)
          .where('ended_at', 'is', null),
        1,
      ),
      run(
        build
          .updateTable('signing_keys')
          .set({ ended_at: now, private_key: null })
          .where('agent_id', '=', id),
        'any',
      ),
      run(build.deleteFrom('agent_grants').where('agent_id', '=', id), 'any'),
      run(build.updateTable('idempotency').set({ reply: null }).where('agent_id', '=', id), 'any'),
      { op: 'invalidate' },
    ],
    /** A changed grant: callers read it anew. */
    touch: (id: string): Step[] => [
      run(
        build
          .updateTable('agents')
          .set((e) => ({ version: e('version', '+', 1) }))
          .where('id', '=', id)
          .where('ended_at', 'is', null),
        1,
      ),
      { op: 'invalidate' },
    ],
    setScopes: (id: string, scopes: readonly string[]): Step =>
      run(
        build
          .updateTable('agents')
          .set({ scopes: JSON.stringify(scopes) })
          .where('id', '=', id)
          .where('ended_at', 'is', null),
        1,
      ),
    /** Ended ones, with all that is kept about them. */
    drop: (ids: readonly string[]): Step[] => [
      run(build.deleteFrom('signing_keys').where('agent_id', 'in', ids), 'any'),
      run(build.deleteFrom('agent_uses').where('agent_id', 'in', ids), 'any'),
      run(build.deleteFrom('agents').where('id', 'in', ids).where('ended_at', 'is not', null), 'any'),
    ],
    dropGrant: (id: string): Step => run(build.deleteFrom('agent_grants').where('id', '=', id), 1),
    recordUse: (id: string, at: number): Step =>
      run(
        build
          .insertInto('agent_uses')
          .values({ agent_id: id, last_used_at: at })
          .onConflict((c) => c.column('agent_id').doUpdateSet({ last_used_at: at })),
        1,
      ),
  }
}
