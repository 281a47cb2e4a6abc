import { lowestBodyAt } from '../../../domain/ids.ts'
import type { Engine } from '../../engine/engine.ts'

/**
 * How to read the audit forward, for everything that keeps a position in it. An entry gets its id before it is committed,
 * and not only on this node, so entries do not appear in the order of their ids: one that appears late may be behind a position
 * that has moved on, and would never be read. The rule is:
 *
 * **A position is never greater than a horizon that was read before the entries were.**
 *
 * All entries before the horizon are there, or never will be. Those after it may be used at once, but a reader that keeps a position
 * reads them again until the horizon has passed them, and remembers meanwhile which it has used.
 *
 * Three things make it true. The store sends no entry with an id that is older than a second (`engine/fresh.ts`). SQLite has
 * one writer, which says what it has not committed yet. PostgreSQL takes no entry that was long on its way
 * (`postgres/merge.ts`), and says which transactions have ended (`postgres/horizon.ts`).
 *
 * One entry keeps its id however late it is: that of an issue whose failure the store did not take (`core/overdue.ts`).
 */
export async function readHorizon({ horizon }: Pick<Engine, 'horizon'>): Promise<string> {
  return lowestBodyAt(await horizon())
}
