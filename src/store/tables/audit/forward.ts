import { sql } from 'kysely'
import type { AuditEntry } from '../../../domain/audit-entry.ts'
import type { Engine } from '../../engine/engine.ts'
import type { AuditRow } from '../../schema/rows.ts'
import { codecs } from '../codecs.ts'

/** Ids that begin alike are of the same 32 ms. */
export const SLOT_LENGTH = 9

/** How many entries there are in one slot of time. */
export interface Slot {
  /** The first `SLOT_LENGTH` characters of their ids. */
  readonly slot: string
  readonly count: number
}

/** What a reader who follows the audit asks (`horizon.ts`). */
export function createForward({ build, read }: Pick<Engine, 'build' | 'read'>) {
  const entries = async (after: string, until: string, limit: number): Promise<AuditEntry[]> => {
    const some = build.selectFrom('audit').selectAll().where('id', '>', after).where('id', '<', until)
    return (await read<AuditRow>(some.orderBy('id').limit(limit))).map(codecs.audit.decode)
  }
  return {
    /** Those between two bodies of ids, both exclusive, oldest first. */
    between: entries,
    /** The slots with entries after `position`, oldest first. The entries themselves are not read. */
    slots: async (position: string): Promise<Slot[]> => {
      const slot = sql<string>`substr(id, 1, ${sql.lit(SLOT_LENGTH)})`
      const counts = build
        .selectFrom('audit')
        .select((e) => [slot.as('slot'), e.fn.countAll<number>().as('count')])
        .where('id', '>', position)
        .groupBy(slot)
        .orderBy(slot)
      return (await read<Slot>(counts)).map((one) => ({ slot: one.slot, count: Number(one.count) }))
    },
  }
}
