import mysqlClient from 'mysql2/promise'
import type { Handle, Issued } from '../../src/backends/kind.ts'
import { mysql } from '../../src/backends/mysql/kind.ts'
import { openMysqlBench } from '../support/mysql-kind.ts'
import { mysqlTricks, prepareTricks } from '../support/mysql-tricks.ts'
import { startRewritingProxy } from '../support/rewriting-proxy.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('mysql', async (): Promise<OpenKind> => {
  const bench = await openMysqlBench()
  await prepareTricks(bench)
  // A statement of the same length that changes nothing.
  const proxy = await startRewritingProxy(bench.port, { 'DROP USER IF EXISTS': 'ALTER USER         ' })
  return {
    kind: mysql as unknown as OpenKind['kind'],
    backend: await bench.open(),
    config: bench.settings,
    scopes: ['shop'],
    logged: bench.logged,
    // A port where nothing listens.
    unreachable: () => bench.open({ port: 1 }),
    probe: {
      exists: async (handle: Handle) =>
        (await bench.sql(`SELECT 1 FROM mysql.user WHERE User = '${handle['username']}'`)).length === 1,
      async use(issued: Issued) {
        const client = await mysqlClient.createConnection(String(issued.fields?.['url']))
        await client.query('INSERT INTO orders VALUES (1)')
        const [[row]] = await client.query<mysqlClient.RowDataPacket[]>('SELECT USER() AS me')
        await client.end()
        return String(row?.['me']).startsWith(`${issued.fields?.['username']}@`)
      },
    },
    tricks: mysqlTricks(bench),
    disarmed: () => bench.open({ port: proxy.port }),
    async close() {
      await bench.close()
      await proxy.close()
    },
  }
})
