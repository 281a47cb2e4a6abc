import { type RawBuilder, sql } from 'kysely'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'

/** A keyless login: the access token that it gave, while that lives. */
export interface Login {
  readonly jti: string
  readonly agentId: string
  /** Epoch ms. */
  readonly expiresAt: number
  /** The run that the token is for, with which it ends; null: none. */
  readonly runId: string | null
}

type LoginId = Pick<Login, 'jti' | 'agentId'>

/** Keyless logins. Those whose token has expired are deleted with other expired rows (`tokens.ts`). */
export function createLogins(engine: Engine) {
  const { build, read } = engine
  const others = ({ jti, agentId }: LoginId, now: number): RawBuilder<unknown> =>
    sql`SELECT 1 FROM logins AS l WHERE l.agent_id = ${agentId} AND l.jti <> ${jti} AND l.expires_at > ${now}
      AND NOT EXISTS (SELECT 1 FROM revoked_tokens AS t WHERE t.jti = l.jti)
      AND NOT EXISTS (SELECT 1 FROM runs AS r WHERE r.id = l.run_id AND r.ended_at IS NOT NULL)`
  return {
    insert: ({ jti, agentId, expiresAt, runId }: Login): Step =>
      insert('logins', { jti, agent_id: agentId, expires_at: expiresAt, run_id: runId }),
    /** Does nothing for a login that has been deleted. */
    drop: (jti: string): Step => run(build.deleteFrom('logins').where('jti', '=', jti), 'any'),
    /** Whether the agent has a living login beside this one. */
    hasOther: async (login: LoginId, now: number): Promise<boolean> => {
      const found = sql<{ found: number }>`SELECT EXISTS (${others(login, now)}) AS found`
      const [row] = await read<{ found: number | boolean }>({ compile: () => found.compile(build) })
      return Boolean(row?.found)
    },
    /**
     * Refused unless the agent has (`isLast` false) or has not (true) a living login beside this one. Place it AFTER
     * `agents.touch` or `agents.end`: on PostgreSQL that waits for the logins under way, and only a later step sees them.
     */
    requireOther: (login: LoginId, isLast: boolean, now: number): Step =>
      run(
        build
          .updateTable('agents')
          .set({ id: login.agentId })
          .where('id', '=', login.agentId)
          .where(sql<boolean>`${isLast ? sql`NOT ` : sql``}EXISTS (${others(login, now)})`),
        1,
      ),
  }
}
