import pg from 'pg'
import type { Handle, Issued } from '../../src/backends/kind.ts'
import type { Config } from '../../src/backends/postgres/config.ts'
import { postgres } from '../../src/backends/postgres/kind.ts'
import { describePostgresVersions } from '../support/describe-postgres.ts'
import { createTestHost } from '../support/host.ts'
import { LONG } from '../support/long.ts'
import { openBench } from '../support/postgres-kind.ts'
import { postgresTricks } from '../support/postgres-tricks.ts'
import { POSTGRES_MAJORS, startPostgresVersion } from '../support/postgres-versions.ts'
import { startRewritingProxy } from '../support/rewriting-proxy.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

/** `npm test` takes the oldest and the newest. */
const MAJORS = LONG ? POSTGRES_MAJORS : [Math.min(...POSTGRES_MAJORS), Math.max(...POSTGRES_MAJORS)]

describePostgresVersions((major) => {
  for (const way of ['functions', 'direct'] as const) {
    describeKind(`postgres, by ${way}`, () => openOn(major, way))
  }
}, MAJORS)

/** What `revoke` is replaced by, which says that the role is gone. */
const NOTHING = `CREATE FUNCTION mayfly.nothin(text) RETURNS text LANGUAGE sql AS $$ SELECT '{"state":"gone"}' $$`

async function openOn(major: number, way: 'functions' | 'direct'): Promise<OpenKind> {
  const bench = await openBench(
    await startPostgresVersion(major, { fsync: 'off', max_prepared_transactions: 8 }),
  )
  await bench.sql('CREATE TABLE orders (id int)')
  const grant = 'read-write' as const
  const login = way === 'functions' ? await bench.setUp({ grant }) : await bench.createRole('CREATEROLE')
  if (way === 'direct') await bench.sql(`GRANT ALL ON orders TO ${login.username} WITH GRANT OPTION`)
  const settings: Config = bench.settings({ ...login, grant })
  if (way === 'functions') await bench.sql(NOTHING)
  const proxy = await startRewritingProxy(bench.server.port, {
    'DROP ROLE %I': 'NOTIFY    %I',
    'mayfly.revoke(': 'mayfly.nothin(',
  })
  const { host, logged } = createTestHost('db')
  const until = async (name: unknown) =>
    bench.sql('SELECT to_json(rolvaliduntil) AS until FROM pg_roles WHERE rolname = $1', [name])
  return {
    kind: postgres as unknown as OpenKind['kind'],
    backend: await postgres.open(settings, host),
    config: settings,
    scopes: [bench.database.name],
    // Only over TLS.
    absentFields: ['sslmode'],
    logged,
    // A port where nothing listens.
    unreachable: () => postgres.open({ ...settings, port: 1 }, host),
    probe: {
      exists: async (handle: Handle) => (await until(handle['username'])).length === 1,
      async use(issued: Issued) {
        const client = new pg.Client({ connectionString: String(issued.fields?.['url']) })
        await client.connect()
        const { rows } = await client.query('INSERT INTO orders VALUES (1) RETURNING current_user AS me')
        await client.end()
        return rows[0].me === issued.fields?.['username']
      },
      expiresAt: async (issued: Issued) => {
        const [row] = await until(issued.fields?.['username'])
        return new Date(String(row?.['until'])).getTime()
      },
    },
    // What a role may do has not changed since 16.
    ...(major === 15 || major === 18 ? { tricks: postgresTricks(bench) } : {}),
    disarmed: () => postgres.open({ ...settings, port: proxy.port }, host),
    async close() {
      // The server goes with everything in it.
      await bench.server.stop()
      await proxy.close()
    },
  }
}
