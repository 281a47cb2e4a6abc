import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { Tables } from '../schema/rows.ts'
import type { Dialect } from './engine.ts'

/** Kysely only compiles. The engines execute, so that every write goes through `commit`. */
export function createBuilder(dialect: Dialect): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect:
      dialect === 'sqlite'
        ? {
            createAdapter: () => new SqliteAdapter(),
            createDriver: () => new DummyDriver(),
            createIntrospector: (db) => new SqliteIntrospector(db),
            createQueryCompiler: () => new SqliteQueryCompiler(),
          }
        : {
            createAdapter: () => new PostgresAdapter(),
            createDriver: () => new DummyDriver(),
            createIntrospector: (db) => new PostgresIntrospector(db),
            createQueryCompiler: () => new PostgresQueryCompiler(),
          },
  })
}

/** `?` as SQLite writes it, `$n` as PostgreSQL does. The hot queries hold no `?` in a literal. */
export function placeholders(dialect: Dialect, sql: string): string {
  if (dialect === 'sqlite') return sql
  let count = 0
  return sql.replaceAll('?', () => {
    count += 1
    return `$${count}`
  })
}
