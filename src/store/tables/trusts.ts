import { sql } from 'kysely'
import type { Agent } from '../../domain/agent.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { AgentRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

/** An entry of `identities` or `platforms`, as agents name it, and when some node last had it; epoch ms. */
export interface Trust {
  readonly entry: string
  readonly trustedAt: number
}

export function createTrusts({ build, read }: Engine) {
  return {
    list: async (): Promise<Trust[]> =>
      (await read<{ entry: string; trusted_at: number }>(build.selectFrom('trusts').selectAll())).map(
        (row) => ({ entry: row.entry, trustedAt: row.trusted_at }),
      ),
    /** A node has these entries. A clock that is behind takes nothing back. */
    say: (entries: readonly string[], now: number): Step =>
      run(
        build
          .insertInto('trusts')
          .values(entries.map((entry) => ({ entry, trusted_at: now })))
          .onConflict((c) =>
            c
              .column('entry')
              .doUpdateSet((e) => ({ trusted_at: e.ref('excluded.trusted_at') }))
              .where(sql<boolean>`trusts.trusted_at < excluded.trusted_at`),
          ),
        'any',
      ),
    /** Refused when some node has it again. */
    requireSince: ({ entry, trustedAt }: Trust): Step =>
      run(
        build
          .updateTable('trusts')
          .set({ trusted_at: trustedAt })
          .where('entry', '=', entry)
          .where('trusted_at', '=', trustedAt),
        1,
      ),
    forget: ({ entry, trustedAt }: Trust): Step =>
      run(build.deleteFrom('trusts').where('entry', '=', entry).where('trusted_at', '=', trustedAt), 'any'),
    /** Living agents that came under this entry. */
    agentsOf: async (entry: string, limit: number): Promise<Agent[]> => {
      const own = build.selectFrom('agents').selectAll().where('ended_at', 'is', null)
      const query = own.where('identity', '=', entry).orderBy('id').limit(limit)
      return (await read<AgentRow>(query)).map(codecs.agents.decode)
    },
  }
}
