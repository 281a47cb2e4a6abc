import { StoreRefused } from '../errors.ts'
import * as initial from './migrations/0001-initial.ts'
import * as agentAudiences from './migrations/0002-agent-audiences.ts'
import * as repeatedAndEnding from './migrations/0005-repeated-and-ending.ts'

export interface Migration {
  readonly version: number
  readonly name: string
  statements(dialect: 'sqlite' | 'postgres'): string[]
}

/** Numbered and immutable: a released one is never edited, only followed. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'initial', statements: initial.statements },
  { version: 2, name: 'agent-audiences', statements: agentAudiences.statements },
  { version: 3, name: 'repeated-and-ending', statements: repeatedAndEnding.statements },
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** What an engine must be able to do to be migrated. All of it happens inside one transaction of the engine's. */
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
