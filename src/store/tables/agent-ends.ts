import { sql } from 'kysely'
import type { AgentEndReason } from '../../domain/agent.ts'
import type { AuditTrace } from '../../domain/audit-entry.ts'
import type { EndReason } from '../../domain/credential.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import { unfinishedEnds } from './unfinished-ends.ts'

/** How many kept replies are erased in the same change as their agent. */
const MAX_ERASED = 100

/** An agent that has ended and still has credentials to end. */
export interface UnfinishedEnd {
  readonly agentId: string
  readonly reason: EndReason
  /** Epoch ms at which the agent ended, and its credentials with it. */
  readonly endedAt: number
  readonly by: AuditTrace
}

export function agentEnds(engine: Engine) {
  const { build } = engine
  const unfinished = unfinishedEnds<Omit<UnfinishedEnd, 'agentId'>>(engine, 'ending')
  return {
    /** Ends the agent and its private key. Everything cached about the agent is stale with the commit. */
    end: (id: string, reason: AgentEndReason, now: number): Step[] => [
      run(
        build
          .updateTable('agents')
          .set((e) => ({ ended_at: now, end_reason: reason, version: e('version', '+', 1) }))
          .where('id', '=', id)
          .where('ended_at', 'is', null)
          // An administrator may have extended it since.
          .$if(reason === 'expired', (update) => update.where('expires_at', '<=', now)),
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
      // Nobody can ask for a kept reply any more. `tidy` erases what exceeds the bound of this change.
      run(
        build
          .updateTable('idempotency')
          .set({ reply: null })
          .where(
            sql<boolean>`(agent_id, key_hash) IN (SELECT agent_id, key_hash FROM idempotency WHERE agent_id = ${id} AND reply IS NOT NULL LIMIT ${sql.lit(MAX_ERASED)})`,
          ),
        'any',
      ),
      { op: 'invalidate', topic: id },
    ],
    /** For an agent with very many credentials, which are ended in slices afterwards (ADR 0023). */
    beginEnd: ({ agentId, ...end }: UnfinishedEnd): Step => unfinished.note(agentId, end),
    finishEnd: (agentId: string): Step => unfinished.forget(agentId),
    unfinishedEnds: async (limit: number): Promise<UnfinishedEnd[]> =>
      (await unfinished.list(limit)).map(({ id, end }) => ({ agentId: id, ...end })),
  }
}
