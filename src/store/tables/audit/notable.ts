import { type SqlBool, sql } from 'kysely'
import type { AuditEntry } from '../../../domain/audit-entry.ts'
import type { Engine } from '../../engine/engine.ts'
import type { AuditRow } from '../../schema/rows.ts'
import { codecs } from '../codecs.ts'

/** The text must equal the condition of the partial index, which is not used otherwise. */
const NOTABLE = sql<SqlBool>`action IN ('enrollment.requested', 'credential.revoke_failed', 'backend.down', 'backend.up', 'backend.root_aged', 'certificate.expiring', 'notification.dropped', 'placeholder.misused')`

/** The entries after `position` that receivers of notifications may be told of, oldest first (`horizon.ts`). */
export async function readNotable(
  { build, read }: Pick<Engine, 'build' | 'read'>,
  position: string,
  limit: number,
): Promise<AuditEntry[]> {
  const after = build.selectFrom('audit').selectAll().where(NOTABLE).where('id', '>', position)
  return (await read<AuditRow>(after.orderBy('id').limit(limit))).map(codecs.audit.decode)
}
