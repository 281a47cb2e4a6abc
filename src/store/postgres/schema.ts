import type pg from 'pg'
import { StoreRefused } from '../errors.ts'
import type { Migratable } from '../schema/migrate.ts'
import { isCreationRace, isStartRefused } from './errors.ts'
import { pidOf } from './lost-commit.ts'

const MIGRATION_LOCK = 0x6d617966

/** An acknowledged change must be on disk: a server that answers before is refused. */
export async function refuseWeakSettings(pool: pg.Pool): Promise<void> {
  const answer = await pool.query(
    "SELECT name, setting FROM pg_settings WHERE name IN ('synchronous_commit', 'fsync', 'server_encoding')",
  )
  for (const { name, setting } of answer.rows as { name: string; setting: string }[]) {
    if (name !== 'server_encoding' && setting === 'off') {
      throw new StoreRefused(
        `PostgreSQL runs with ${name}=off: acknowledged credentials could be lost. Set it to on.`,
      )
    }
    if (name === 'server_encoding' && setting !== 'UTF8')
      throw new StoreRefused('the database must be encoded in UTF8')
  }
}

const POOLED =
  'PostgreSQL is reached through a pooler (such as pgbouncer). Give the address of the server itself in the database URL.'

/**
 * A session is ours for as long as its connection: it has our time-outs and statements, and is ended by the number that
 * its server gave it when the connection is lost (`postgres-unknown.ts`). A pooler refuses the first, and gives another number.
 */
export async function refusePooler(pool: pg.Pool): Promise<void> {
  const client = await pool.connect().catch((error: unknown) => {
    throw isStartRefused(error) ? new StoreRefused(POOLED, { cause: error }) : error
  })
  try {
    const answer = await client.query('SELECT pg_backend_pid() AS pid')
    if (answer.rows[0]?.pid !== pidOf(client)) throw new StoreRefused(POOLED)
  } finally {
    client.release()
  }
}

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

/** Nodes that start together wait for one another here, however long it takes. */
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
