import pg from 'pg'
import type { World } from '../cli/support.ts'
import { startPostgres } from './postgres.ts'

/** A real database behind a backend `orders-db`, with the table `orders` in it. */
export interface OrdersDatabase {
  /** As superuser. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Whether there is a role of this name now. */
  hasRole(name: string): Promise<boolean>
  close(): Promise<void>
}

export async function addOrdersDatabase(world: World): Promise<OrdersDatabase> {
  const server = await startPostgres()
  const database = await server.createDatabase()
  const root = new pg.Client({ connectionString: database.url })
  await root.connect()
  await root.query("CREATE TABLE orders (name text); INSERT INTO orders VALUES ('plums')")
  const reply = await world.app.admin('POST', '/v1/admin/backends', {
    type: 'postgres',
    name: 'orders-db',
    config: {
      host: server.host,
      port: server.port,
      database: database.name,
      username: server.username,
      ...(server.password === undefined ? {} : { password: server.password }),
      local: true,
    },
  })
  if (reply.status !== 200) throw new Error(`no backend: ${reply.text}`)
  const sql: OrdersDatabase['sql'] = async (text, values) => (await root.query(text, values)).rows
  return {
    sql,
    hasRole: async (name) => (await sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [name])).length > 0,
    close: async () => {
      await root.end()
      await database.drop()
      await server.stop()
    },
  }
}
