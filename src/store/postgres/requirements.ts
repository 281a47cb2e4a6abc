import type pg from 'pg'
import { StoreRefused } from '../errors.ts'
import { isStartRefused } from './errors.ts'

const OLDEST_MAJOR = 15
const POOLED =
  'the database URL leads to a connection pooler such as PgBouncer, which Mayfly cannot use. Give the address of the PostgreSQL server itself'

/** The process id of the session, as its server reported it when the connection began. */
export function pidOf(client: pg.PoolClient): number | undefined {
  return 'processID' in client && typeof client.processID === 'number' ? client.processID : undefined
}

/** Throws `StoreRefused` for a server on which the store could not keep its promises. */
export async function requireUsableServer(pool: pg.Pool): Promise<void> {
  await requireDirectConnection(pool)
  const answer = await pool.query(
    "SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'server_encoding', 'fsync', 'synchronous_commit')",
  )
  const settings = new Map(
    (answer.rows as { name: string; setting: string }[]).map((row) => [row.name, row.setting]),
  )
  const major = Math.floor(Number(settings.get('server_version_num')) / 10_000)
  if (major < OLDEST_MAJOR)
    throw new StoreRefused(
      `the server runs PostgreSQL ${major}, and Mayfly needs ${OLDEST_MAJOR} or later. Upgrade the server`,
    )
  const encoding = settings.get('server_encoding')
  if (encoding !== 'UTF8')
    throw new StoreRefused(
      `the database is encoded in ${encoding}, and Mayfly needs UTF8. Create the database with ENCODING 'UTF8' TEMPLATE template0`,
    )
  // An acknowledged change must be on disk.
  for (const name of ['fsync', 'synchronous_commit']) {
    if (settings.get(name) === 'off')
      throw new StoreRefused(
        `PostgreSQL runs with ${name}=off, so a crash could lose acknowledged credentials. Set ${name} to on`,
      )
  }
}

/**
 * A connection must be one session of the server: it has our time-outs and prepared statements, and when it is lost,
 * `lost-commit.ts` ends the session by the process id that the server reported. A pooler refuses our start
 * parameters, or reports a process id of its own.
 */
async function requireDirectConnection(pool: pg.Pool): Promise<void> {
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
