import type { World } from '../cli/support.ts'
import { type MysqlBench, openMysqlBench } from './mysql-kind.ts'

/** A real server behind a backend `shop`, added as its page says; the table `orders` holds a row. */
export async function addShop(world: World): Promise<MysqlBench> {
  const bench = await openMysqlBench()
  await bench.sql('INSERT INTO shop.orders VALUES (42)')
  const { host, port, username, databases, local } = bench.settings
  const reply = await world.app.admin('POST', '/v1/admin/backends', {
    type: 'mysql',
    name: 'shop',
    config: { host, port, username, password: 'change-me', databases, local, grant: 'read-write' },
  })
  if (reply.status !== 200) throw new Error(`no backend: ${reply.text}`)
  return bench
}
