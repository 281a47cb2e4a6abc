import type pg from 'pg'
import type { Migratable } from '../schema/migrate.ts'
import { isCreationRace } from './errors.ts'

const MIGRATION_LOCK = 0x6d617966

export function migratable(pool: pg.Pool): Migratable {
  return {
    dialect: 'postgres',
    version: async () => {
      await pool
        .query(
          'CREATE TABLE IF NOT EXISTS mayfly_schema (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())',
        )
        .catch((error: unknown) => {
          if (!isCreationRace(error)) throw error
        })
      const answer = await pool.query('SELECT coalesce(max(version), 0) AS version FROM mayfly_schema')
      return Number(answer.rows[0]?.version ?? 0)
    },
    apply: async (statements, version) => {
      const client = await pool.connect()
      try {
        await apply(client, statements, version)
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined)
        throw error
      } finally {
        client.release()
      }
    },
  }
}

/** Nodes that start together wait for each other here, however long that takes. */
async function apply(client: pg.PoolClient, statements: readonly string[], version: number): Promise<void> {
  await client.query('BEGIN')
  await client.query('SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0')
  await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
  const done = await client.query('SELECT 1 FROM mayfly_schema WHERE version = $1', [version])
  if (done.rowCount === 0) {
    for (const sql of statements) await client.query(sql)
    await client.query('INSERT INTO mayfly_schema (version) VALUES ($1)', [version])
    if (version === 1) await client.query("INSERT INTO meta (key, value) VALUES ('generation', '1')")
  }
  await client.query('COMMIT')
}
