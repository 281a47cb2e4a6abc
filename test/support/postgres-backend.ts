import type { World } from '../cli/support.ts'
import { openUpstreamDatabase } from './upstream-database.ts'

/** A real database behind a backend `orders`, with the table `orders` in it. */
export interface OrdersDatabase {
  /** As superuser. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Whether there is a role of this name now. */
  hasRole(name: string): Promise<boolean>
  close(): Promise<void>
}

export async function addOrdersDatabase(world: World): Promise<OrdersDatabase> {
  const upstream = await openUpstreamDatabase()
  const { root } = upstream
  await root.query("CREATE TABLE orders (name text); INSERT INTO orders VALUES ('plums')")
  const reply = await world.app.admin('POST', '/v1/admin/backends', {
    type: 'postgres',
    name: 'orders',
    config: upstream.config(),
  })
  if (reply.status !== 200) throw new Error(`no backend: ${reply.text}`)
  const sql: OrdersDatabase['sql'] = async (text, values) => (await root.query(text, values)).rows
  return {
    sql,
    hasRole: async (name) => (await sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [name])).length > 0,
    close: () => upstream.close(),
  }
}
