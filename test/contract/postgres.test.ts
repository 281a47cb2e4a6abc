import pg from 'pg'
import type { Handle, Issued, Kind } from '../../src/backends/kind.ts'
import { postgres } from '../../src/backends/postgres/kind.ts'
import { createTestHost } from '../support/host.ts'
import { startPostgres } from '../support/postgres.ts'
import { describeKind, type OpenKind } from './kind-contract.ts'

describeKind('postgres', async (): Promise<OpenKind> => {
  const server = await startPostgres()
  const database = await server.createDatabase()
  const admin = new pg.Pool({ connectionString: database.url, max: 2 })
  admin.on('error', () => undefined)
  const { host, logged } = createTestHost('db')
  const settings = {
    host: server.host,
    port: server.port,
    database: database.name,
    username: server.username,
    ...(server.password === undefined ? {} : { password: server.password }),
    local: true,
    grant: 'read-write' as const,
    schemas: ['public'],
  }
  return {
    kind: postgres as unknown as Kind,
    backend: await postgres.open(settings, host),
    scopes: [database.name],
    logged,
    // A port where nothing listens.
    unreachable: () => postgres.open({ ...settings, port: 1 }, host),
    probe: {
      async exists(handle: Handle) {
        const { rowCount } = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [
          handle['username'],
        ])
        return rowCount === 1
      },
      async use(issued: Issued) {
        const client = new pg.Client({ connectionString: String(issued.fields?.['url']) })
        await client.connect()
        const { rows } = await client.query('SELECT current_user AS me')
        await client.end()
        return rows[0].me === issued.fields?.['username']
      },
      async expiresAt(issued: Issued) {
        const { rows } = await admin.query('SELECT rolvaliduntil AS until FROM pg_roles WHERE rolname = $1', [
          issued.fields?.['username'],
        ])
        return (rows[0].until as Date).getTime()
      },
    },
    async close() {
      await admin.end()
      await database.drop()
      await server.stop()
    },
  }
})
