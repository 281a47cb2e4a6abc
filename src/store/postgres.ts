import pg from 'pg'
import { StoreError } from './change.ts'
import { createBuilder, placeholders } from './compile.ts'
import type { Engine } from './engine.ts'
import { migrate } from './migrate.ts'
import { isUniqueViolation, unreachable } from './postgres-errors.ts'
import { Lanes } from './postgres-lanes.ts'

const MIGRATION_LOCK = 0x6d617966
const INT8 = 20

export interface PostgresOptions {
  url: string
  /** Connections of this node. */
  connections?: number
  onTrouble?: (what: string, error: unknown) => void
}

const parsers = new pg.TypeOverrides()
parsers.setTypeParser(INT8, Number)

/** Many equal nodes may open the same database. */
export async function openPostgres(options: PostgresOptions): Promise<Engine> {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connections ?? 10,
    types: parsers,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    statement_timeout: 10_000,
    lock_timeout: 5_000,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
    application_name: 'mayfly',
  })
  pool.on('error', (error) => options.onTrouble?.('a database connection was lost', error))
  pool.on('connect', (client) => client.on('error', () => undefined))
  try {
    await refuseWeakSettings(pool)
    await migrate(migratable(pool))
  } catch (error) {
    await pool.end()
    throw error
  }
  const lanes = new Lanes(pool, options.onTrouble)
  const pulse = await createPulse(pool)
  return {
    dialect: 'postgres',
    build: createBuilder('postgres'),
    stats: lanes.stats,
    read: async <R>(query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
      const { sql, parameters } = query.compile()
      return rows<R>(pool, { text: sql, values: parameters as unknown[] })
    },
    prepare: <R>(sql: string) => {
      const text = placeholders('postgres', sql)
      hotNames += 1
      const name = `hot:${hotNames}`
      return (params) => rows<R>(pool, { name, text, values: [...params] })
    },
    commit: lanes.commit,
    generation: pulse.generation,
    now: pulse.now,
    trouble: () => lanes.trouble() ?? pulse.trouble(),
    close: async () => {
      await lanes.drain()
      pulse.stop()
      await pool.end()
    },
  }
}

let hotNames = 0

async function rows<R>(pool: pg.Pool, query: pg.QueryConfig): Promise<R[]> {
  try {
    return (await pool.query(query)).rows as R[]
  } catch (cause) {
    throw new StoreError('the database cannot be read', { cause })
  }
}

/** An acknowledged change must be on disk: a server that answers before is refused. */
async function refuseWeakSettings(pool: pg.Pool): Promise<void> {
  const answer = await pool.query(
    "SELECT name, setting FROM pg_settings WHERE name IN ('synchronous_commit', 'fsync', 'server_encoding')",
  )
  for (const { name, setting } of answer.rows as { name: string; setting: string }[]) {
    if (name !== 'server_encoding' && setting === 'off') {
      throw new Error(
        `PostgreSQL runs with ${name}=off: acknowledged credentials could be lost. Set it to on.`,
      )
    }
    if (name === 'server_encoding' && setting !== 'UTF8')
      throw new Error('the database must be encoded in UTF8')
  }
}

function migratable(pool: pg.Pool) {
  return {
    dialect: 'postgres' as const,
    version: async () => {
      await pool
        .query(
          'CREATE TABLE IF NOT EXISTS mayfly_schema (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())',
        )
        .catch(ignoreRace)
      const answer = await pool.query('SELECT coalesce(max(version), 0) AS version FROM mayfly_schema')
      return Number(answer.rows[0]?.version ?? 0)
    },
    apply: async (statements: readonly string[], version: number) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
        const done = await client.query('SELECT 1 FROM mayfly_schema WHERE version = $1', [version])
        if (done.rowCount === 0) {
          for (const sql of statements) await client.query(sql)
          await client.query('INSERT INTO mayfly_schema (version) VALUES ($1)', [version])
          if (version === 1) await client.query("INSERT INTO meta (key, value) VALUES ('generation', '1')")
        }
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined)
        throw error
      } finally {
        client.release()
      }
    },
  }
}

/** Two nodes that start at once may both try to create the table of versions. */
function ignoreRace(error: unknown): void {
  if (!isUniqueViolation(error)) throw error
}

/**
 * The generation and the clock in one tiny query, shared by all who ask in the same moment. A caller is given
 * only an answer whose query began after it asked: what another node changed before that is seen.
 */
async function createPulse(pool: pg.Pool) {
  const query = {
    name: 'pulse',
    text: "SELECT value, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at FROM meta WHERE key = 'generation'",
  }
  let next: Promise<number> | undefined
  let running: Promise<unknown> = Promise.resolve()
  let clockAhead = 0
  let latest = 0
  let failed: string | undefined

  async function beat(): Promise<number> {
    const sent = Date.now()
    try {
      const answer = await pool.query(query)
      failed = undefined
      const row = answer.rows[0] as { value: string; at: number }
      clockAhead = row.at - Math.round((sent + Date.now()) / 2)
      return Number(row.value)
    } catch (cause) {
      failed = unreachable(cause) ? 'the database cannot be reached' : 'the database cannot be read'
      throw new StoreError(failed, { cause })
    }
  }

  function generation(): Promise<number> {
    next ??= running.then(
      () => start(),
      () => start(),
    )
    return next
  }

  function start(): Promise<number> {
    next = undefined
    const beating = beat()
    running = beating.catch(() => undefined)
    return beating
  }

  await generation()
  const timer = setInterval(() => void generation().catch(() => undefined), 1_000).unref()
  return {
    generation,
    now: () => {
      latest = Math.max(latest, Date.now() + clockAhead)
      return latest
    },
    trouble: () => failed,
    stop: () => clearInterval(timer),
  }
}
