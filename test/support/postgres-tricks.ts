import type pg from 'pg'
import type { Issued } from '../../src/backends/kind.ts'
import type { Hold, Tricks } from '../contract/open-kind.ts'
import { type Bench, login } from './postgres-kind.ts'

/** What the holder of a PostgreSQL credential may do in order to keep it. The server must let it prepare transactions. */
export function postgresTricks(bench: Bench): Tricks {
  const run =
    (...statements: readonly string[]) =>
    async (issued: Issued) => {
      const holder = openHolder(bench, issued)
      const client = await holder.login()
      for (const statement of statements) await client.query(statement)
      return holder
    }
  return {
    'a session with a lock on its own role, advisory locks and a channel': run(
      'LISTEN orders',
      "SELECT pg_advisory_lock(1835101798), pg_advisory_lock_shared(hashtext('mayfly'))",
      "BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'another'",
    ),
    'objects, and rules for those to come': run(
      'SELECT lo_from_bytea(0, convert_to(repeat($$x$$, 100), $$UTF8$$)) FROM generate_series(1, 3)',
      'CREATE TEMP TABLE planted (id int)',
      "CREATE FUNCTION pg_temp.peek() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
      'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC',
    ),
    'a transaction prepared for two-phase commit': run(
      "BEGIN; SELECT lo_create(0); PREPARE TRANSACTION 'planted'",
    ),
    'a statement that begins again when it is cancelled': async (issued) => {
      const holder = openHolder(bench, issued)
      const client = await holder.login()
      const again =
        'LOOP BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP;'
      client.query(`DO $$ BEGIN ${again} END $$`).catch(() => undefined)
      return holder
    },
    'sessions that are opened in a loop': async (issued) => {
      const holder = openHolder(bench, issued)
      const stopped = new AbortController()
      const loop = async () => {
        while (!stopped.signal.aborted) await holder.login()
      }
      await holder.login()
      const looping = loop().catch(() => undefined)
      return {
        works: holder.works,
        async [Symbol.asyncDispose]() {
          stopped.abort()
          await looping
          await holder[Symbol.asyncDispose]()
        },
      }
    },
    'a lock on a table that everybody writes': run('BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE'),
  }
}

/** Works while the server has a session or anything else of the role, or admits a new session. */
function openHolder(bench: Bench, issued: Issued): Hold & { login(): Promise<pg.Client> } {
  const clients: pg.Client[] = []
  const pids: unknown[] = []
  const open = async () => {
    const client = await login(issued)
    clients.push(client)
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    pids.push(rows[0].pid)
    return client
  }
  const ofNobody = (table: string, owner: string) =>
    `SELECT FROM ${table} WHERE ${owner} NOT IN (SELECT oid FROM pg_roles)`
  return {
    login: open,
    async works() {
      const left = await bench.sql(
        `SELECT FROM pg_stat_activity WHERE pid = ANY ($1)
         UNION ALL SELECT FROM pg_prepared_xacts WHERE owner = $2
         UNION ALL ${ofNobody('pg_largeobject_metadata', 'lomowner')}
         UNION ALL ${ofNobody('pg_default_acl', 'defaclrole')}`,
        [pids, issued.fields?.['username']],
      )
      if (left.length > 0) return true
      return open().then(
        () => true,
        () => false,
      )
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) await client.end().catch(() => undefined)
    },
  }
}
