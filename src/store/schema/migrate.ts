import { StoreRefused } from '../errors.ts'
import * as initial from './migrations/0001-initial.ts'
import * as agentAudiences from './migrations/0002-agent-audiences.ts'
import * as agentBounds from './migrations/0003-agent-bounds.ts'
import * as repeatedAndEnding from './migrations/0004-repeated-and-ending.ts'
import * as agentChanges from './migrations/0005-agent-changes.ts'
import * as revokedCredentials from './migrations/0006-revoked-credentials.ts'
import * as rootRotation from './migrations/0007-root-rotation.ts'
import * as plugins from './migrations/0008-plugins.ts'
import * as notifications from './migrations/0009-notifications.ts'
import * as people from './migrations/0010-people.ts'
import * as activity from './migrations/0011-activity.ts'
import * as owner from './migrations/0012-owner.ts'
import * as sso from './migrations/0013-sso.ts'
import * as runs from './migrations/0014-runs.ts'
import * as keyless from './migrations/0015-keyless.ts'
import * as proxy from './migrations/0016-proxy.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  statements(dialect: 'sqlite' | 'postgres'): string[]
}

/** Numbered. Never edit a released migration; add one. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'initial', statements: initial.statements },
  { version: 2, name: 'agent-audiences', statements: agentAudiences.statements },
  { version: 3, name: 'agent-bounds', statements: agentBounds.statements },
  { version: 4, name: 'repeated-and-ending', statements: repeatedAndEnding.statements },
  { version: 5, name: 'agent-changes', statements: agentChanges.statements },
  { version: 6, name: 'revoked-credentials', statements: revokedCredentials.statements },
  { version: 7, name: 'root-rotation', statements: rootRotation.statements },
  { version: 8, name: 'plugins', statements: plugins.statements },
  { version: 9, name: 'notifications', statements: notifications.statements },
  { version: 10, name: 'people', statements: people.statements },
  { version: 11, name: 'activity', statements: activity.statements },
  { version: 12, name: 'owner', statements: owner.statements },
  { version: 13, name: 'sso', statements: sso.statements },
  { version: 14, name: 'runs', statements: runs.statements },
  { version: 15, name: 'keyless', statements: keyless.statements },
  { version: 16, name: 'proxy', statements: proxy.statements },
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** The operations that a migration needs from an engine. All of them run inside one transaction. */
export interface Migratable {
  readonly dialect: 'sqlite' | 'postgres'
  version(): Promise<number>
  apply(statements: readonly string[], version: number): Promise<void>
}

/** Brings the schema to `SCHEMA_VERSION`. Throws `StoreRefused` when the database is newer than this program. */
export async function migrate(target: Migratable): Promise<void> {
  const found = await target.version()
  if (found > SCHEMA_VERSION) {
    throw new StoreRefused(
      `the database has schema ${found}, this Mayfly knows ${SCHEMA_VERSION}: run a newer Mayfly`,
    )
  }
  for (const migration of MIGRATIONS.slice(found)) {
    await target.apply(migration.statements(target.dialect), migration.version)
  }
}
