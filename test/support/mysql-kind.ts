import type { Backend } from '../../src/backends/kind.ts'
import type { Config } from '../../src/backends/mysql/config.ts'
import { mysql } from '../../src/backends/mysql/kind.ts'
import { createTestHost } from './host.ts'
import { type MariadbServer, startMariadb } from './mariadb-server.ts'

export interface MysqlBench extends MariadbServer {
  readonly settings: Config
  open(overrides?: Partial<Config>): Promise<Backend>
  logged(): string
  close(): Promise<void>
}

/** The statements of docs/backends/mysql.md. */
export const LEAST = [
  "CREATE USER mayfly@'%' IDENTIFIED BY 'change-me'",
  "GRANT CREATE USER, PROCESS, CONNECTION ADMIN ON *.* TO mayfly@'%'",
  "GRANT SELECT (User) ON mysql.user TO mayfly@'%'",
  "GRANT SELECT ON performance_schema.threads TO mayfly@'%'",
  "GRANT SELECT, SHOW VIEW, INSERT, UPDATE, DELETE ON `shop`.* TO mayfly@'%' WITH GRANT OPTION",
]

/** A server with the database `shop` and an account for Mayfly that has the least rights. */
export async function openMysqlBench(flags: readonly string[] = []): Promise<MysqlBench> {
  const server = await startMariadb(['--performance-schema=ON', ...flags])
  const tables = [
    'CREATE DATABASE shop',
    'CREATE TABLE shop.orders (id int)',
    'CREATE TABLE shop.invoices (id int)',
  ]
  for (const statement of [...tables, ...LEAST]) await server.sql(statement)
  const { host, logged } = createTestHost('shop')
  const settings: Config = {
    host: '127.0.0.1',
    port: server.port,
    username: 'mayfly',
    password: 'change-me',
    local: true,
    databases: ['shop'],
    grant: 'read-write',
  }
  const opened: Backend[] = []
  return {
    ...server,
    settings,
    logged,
    async open(overrides = {}) {
      const backend = await mysql.open({ ...settings, ...overrides }, host)
      opened.push(backend)
      return backend
    },
    async close() {
      await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
      await server.stop()
    },
  }
}
