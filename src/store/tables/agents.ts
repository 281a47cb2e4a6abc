import { type Compilable, sql } from 'kysely'
import { type Agent, type AgentBounds, type AgentGrant, nameKey } from '../../domain/agent.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { AgentGrantRow, AgentRow, SigningKeyRow, Tables } from '../schema/rows.ts'
import { agentEnds } from './agent-ends.ts'
import { among } from './among.ts'
import { codecs, encodeAudiences } from './codecs.ts'

const { agents, agent_grants: agentGrants, signing_keys: signingKeys } = codecs

/** An agent with its last use. */
export type AgentWithUse = Agent & { readonly lastUse: AgentUse | null }

export interface AgentUse {
  /** Epoch ms. */
  readonly at: number
  /** The IP address; null: not known. */
  readonly from: string | null
}

type UseRow = Pick<Tables['agent_uses'], 'last_used_at' | 'ip_address'>

const useOf = (row: { [C in keyof UseRow]: UseRow[C] | null } | undefined): AgentUse | null =>
  row === undefined || row.last_used_at === null ? null : { at: row.last_used_at, from: row.ip_address }

/** Agents, their extra grants, their last use and their signing keys. */
export function createAgents(engine: Engine) {
  return {
    ...agentReads(engine),
    ...grantReads(engine),
    ...signingKeyReads(engine),
    ...boundsOfPolicies(engine),
    ...agentSteps(engine),
    ...changeSteps(engine),
    ...agentEnds(engine),
  }
}

function agentReads(engine: Engine) {
  const { build, read } = engine
  const living = () => build.selectFrom('agents').selectAll().where('ended_at', 'is', null)
  const one = async (query: Compilable<AgentRow>): Promise<Agent | undefined> => {
    const [row] = await read<AgentRow>(query)
    return row === undefined ? undefined : agents.decode(row)
  }
  return {
    /** By its token, or by the previous one, whose end the caller must check (`secretsEnd`). */
    findByBearer: (hash: string) =>
      one(living().where((e) => e.or([e('bearer_hash', '=', hash), e('previous_bearer_hash', '=', hash)]))),
    findByClient: (clientId: string) => one(living().where('client_id', '=', clientId)),
    findLiving: (id: string) => one(living().where('id', '=', id)),
    findByName: (name: string) => one(living().where('name_key', '=', nameKey(name))),
    /** Which of these names living agents have, in lower case. */
    takenNames: async (names: readonly string[]): Promise<Set<string>> => {
      if (names.length === 0) return new Set()
      const taken = build
        .selectFrom('agents')
        .select('name_key')
        .where('ended_at', 'is', null)
        .where(among(engine, names.map(nameKey), 'name_key'))
      return new Set((await read<{ name_key: string }>(taken)).map((row) => row.name_key))
    },
    /** The id of the last agent with this name, ended or not: a name is free again only when nobody has it. */
    lastNamed: async (name: string): Promise<string | undefined> => {
      const named = build.selectFrom('agents').select('id').where('name_key', '=', nameKey(name))
      return (await read<{ id: string }>(named.orderBy('id', 'desc').limit(1)))[0]?.id
    },

    /** Oldest first, those after `cursor`, an id. */
    list: async (cursor: string | undefined, limit: number): Promise<AgentWithUse[]> => {
      let query = build
        .selectFrom('agents')
        .leftJoin('agent_uses', 'agent_uses.agent_id', 'agents.id')
        .selectAll('agents')
        .select(['agent_uses.last_used_at', 'agent_uses.ip_address'])
        .where('ended_at', 'is', null)
      if (cursor !== undefined) query = query.where('id', '>', cursor)
      type Row = AgentRow & { [C in keyof UseRow]: UseRow[C] | null }
      const rows = await read<Row>(query.orderBy('id').limit(limit))
      return rows.map((row) => ({ ...agents.decode(row), lastUse: useOf(row) }))
    },
    lastUse: async (id: string): Promise<AgentUse | null> => {
      const used = build.selectFrom('agent_uses').selectAll().where('agent_id', '=', id)
      return useOf((await read<UseRow>(used))[0])
    },
    findAllLiving: async (ids: readonly string[]): Promise<Agent[]> =>
      ids.length === 0 ? [] : (await read<AgentRow>(living().where(among(engine, ids)))).map(agents.decode),
    countByPolicy: (policy: string): Promise<number> =>
      countRows(
        engine,
        build.selectFrom('agents').select('id').where('policy', '=', policy).where('ended_at', 'is', null),
      ),
    expired: async (now: number, limit: number): Promise<Agent[]> => {
      const expired = living().where('expires_at', '<=', now).orderBy('expires_at').limit(limit)
      return (await read<AgentRow>(expired)).map(agents.decode)
    },
    /** Ids of agents that ended before `time`, earliest end first. */
    oldestEnded: async (time: number, limit: number): Promise<string[]> => {
      const ended = build.selectFrom('agents').select('id').where('ended_at', '<', time)
      return (await read<{ id: string }>(ended.orderBy('ended_at').limit(limit))).map((row) => row.id)
    },
  }
}

function grantReads({ build, read }: Engine) {
  const grants = () => build.selectFrom('agent_grants').selectAll()
  const all = async (query: Compilable<AgentGrantRow>): Promise<AgentGrant[]> =>
    (await read<AgentGrantRow>(query)).map(agentGrants.decode)
  return {
    grantsOf: (id: string) => all(grants().where('agent_id', '=', id)),
    grantsOfAll: async (ids: readonly string[]): Promise<AgentGrant[]> =>
      ids.length === 0 ? [] : all(grants().where('agent_id', 'in', ids)),
    expiredGrants: (now: number, limit: number) => all(grants().where('expires_at', '<=', now).limit(limit)),
  }
}

function signingKeyReads({ build, read }: Engine) {
  const keys = () => build.selectFrom('signing_keys').selectAll()
  return {
    signingKeyOf: async (agentId: string): Promise<SigningKey | undefined> => {
      const [row] = await read<SigningKeyRow>(keys().where('agent_id', '=', agentId))
      return row === undefined ? undefined : signingKeys.decode(row)
    },
    listSigningKeys: async (cursor: string | undefined, limit: number): Promise<SigningKey[]> => {
      let query = keys().where('ended_at', 'is', null)
      if (cursor !== undefined) query = query.where('agent_id', '>', cursor)
      return (await read<SigningKeyRow>(query.orderBy('agent_id').limit(limit))).map(signingKeys.decode)
    },
  }
}

function boundsOfPolicies({ build, read }: Engine) {
  return {
    /** The policies of living agents whose bounds are not recorded. */
    policiesWithoutBounds: async (): Promise<string[]> => {
      const named = build.selectFrom('agents').select('policy').distinct().where('policy', 'is not', null)
      const open = named.where('bounds', 'is', null).where('ended_at', 'is', null)
      return (await read<{ policy: string }>(open)).map(({ policy }) => policy)
    },
    /** For all agents of this policy whose bounds are not recorded. */
    setBounds: (policy: string, bounds: AgentBounds): Step =>
      run(
        build
          .updateTable('agents')
          .set({ bounds: JSON.stringify(bounds) })
          .where('policy', '=', policy)
          .where('bounds', 'is', null)
          .where('ended_at', 'is', null),
        'any',
      ),
  }
}

/** A statement for one agent that has not ended. */
function updateLiving({ build }: Engine, id: string) {
  return build.updateTable('agents').where('id', '=', id).where('ended_at', 'is', null)
}

function agentSteps(engine: Engine) {
  const { build } = engine
  return {
    /** Without a key, it gets one by `addSigningKey`. */
    insert: (agent: Agent, key?: SigningKey): Step[] => [
      insert('agents', agents.encode(agent)),
      ...(key === undefined ? [] : [insert('signing_keys', signingKeys.encode(key))]),
    ],
    /** A changed grant or a revoked token: raises the version, so that callers are read again. */
    touch: (id: string): Step[] => [
      run(
        updateLiving(engine, id).set((e) => ({ version: e('version', '+', 1) })),
        1,
      ),
      { op: 'invalidate', topic: id },
    ],
    /** As `touch`; one that ends before `until`, epoch ms, ends then. */
    extend: (id: string, until: number): Step[] => [
      run(
        updateLiving(engine, id).set((e) => ({
          version: e('version', '+', 1),
          expires_at: e.case().when('expires_at', '<', until).then(until).else(e.ref('expires_at')).end(),
        })),
        1,
      ),
      { op: 'invalidate', topic: id },
    ],
    setScopes: (id: string, scopes: readonly string[]): Step =>
      run(updateLiving(engine, id).set({ scopes: JSON.stringify(scopes) }), 1),
    /** Deletes ended agents with everything kept about them. */
    drop: (ids: readonly string[]): Step[] => [
      run(build.deleteFrom('signing_keys').where('agent_id', 'in', ids), 'any'),
      run(build.deleteFrom('agent_uses').where('agent_id', 'in', ids), 'any'),
      run(build.deleteFrom('agents').where('id', 'in', ids).where('ended_at', 'is not', null), 'any'),
    ],
    insertGrant: (grant: AgentGrant): Step => insert('agent_grants', agentGrants.encode(grant)),
    dropGrant: (id: string): Step => run(build.deleteFrom('agent_grants').where('id', '=', id), 1),
    recordUse: (id: string, { at, from }: AgentUse): Step =>
      run(
        build
          .insertInto('agent_uses')
          .values({ agent_id: id, last_used_at: at, ip_address: from })
          .onConflict((c) => c.column('agent_id').doUpdateSet({ last_used_at: at, ip_address: from })),
        1,
      ),
  }
}

/** What an administrator may change. */
export type AgentSettings = Pick<Agent, 'scopes' | 'audiences' | 'expiresAt' | 'description' | 'owner'>
/** What an agent without secrets takes from its entry with a login. */
export type AgentRights = Pick<Agent, 'scopes' | 'bounds' | 'expiresAt'>
/** What a rotation replaces. */
export type AgentSecrets = Pick<Agent, 'bearerHash' | 'clientSecretHash' | 'rotation' | 'previous'>

/** Each is refused when the agent has changed since it was read, or has ended. */
function changeSteps(engine: Engine) {
  const { build, dialect } = engine
  const change = ({ id, version }: Pick<Agent, 'id' | 'version'>, set: Partial<AgentRow>): Step[] => [
    run(
      updateLiving(engine, id)
        .set({ ...set, version: version + 1 })
        .where('version', '=', version),
      1,
    ),
    { op: 'invalidate', topic: id },
  ]
  return {
    change: (agent: Pick<Agent, 'id' | 'version'>, settings: AgentSettings): Step[] =>
      change(agent, {
        scopes: JSON.stringify(settings.scopes),
        audiences: encodeAudiences(settings.audiences),
        expires_at: settings.expiresAt,
        description: settings.description,
        owner: settings.owner,
      }),
    follow: (agent: Pick<Agent, 'id' | 'version'>, { scopes, bounds, expiresAt }: AgentRights): Step[] =>
      change(agent, {
        scopes: JSON.stringify(scopes),
        bounds: bounds === null ? null : JSON.stringify(bounds),
        expires_at: expiresAt,
      }),
    /** For an agent without a key. Of two at once, the second is refused. */
    addSigningKey: (agent: Pick<Agent, 'id' | 'version'>, key: SigningKey): Step[] => [
      ...change(agent, { signing_key_id: key.keyId }),
      insert('signing_keys', signingKeys.encode(key)),
    ],
    rotate: (agent: Pick<Agent, 'id' | 'version'>, secrets: AgentSecrets): Step[] =>
      change(agent, {
        bearer_hash: secrets.bearerHash,
        client_secret_hash: secrets.clientSecretHash,
        rotation: secrets.rotation,
        previous_bearer_hash: secrets.previous?.bearerHash ?? null,
        previous_secret_hash: secrets.previous?.clientSecretHash ?? null,
        previous_until: secrets.previous?.until ?? null,
      }),
    setGrantScopes: (id: string, scopes: readonly string[]): Step =>
      run(
        build
          .updateTable('agent_grants')
          .set({ scopes: JSON.stringify(scopes) })
          .where('id', '=', id),
        1,
      ),
    /**
     * Refused when the agent has a living credential beside `known`. Place it AFTER the step that changes the agent: on
     * PostgreSQL that step waits for the issues that hold a guard on it, and only a later step sees their credentials.
     */
    requireNoOther: (id: string, known: readonly string[], now: number): Step =>
      run(
        build
          .updateTable('agents')
          .set({ id })
          .where('id', '=', id)
          .where(
            sql<boolean>`NOT EXISTS (SELECT 1 FROM credentials AS c WHERE c.agent_id = ${id} AND c.ended_at IS NULL
              AND NOT (c.state = 'active' AND c.expires_at <= ${now}) AND NOT ${among({ dialect }, known, 'c.id')})`,
          ),
        1,
      ),
  }
}
