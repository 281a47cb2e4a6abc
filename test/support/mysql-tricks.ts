import mysqlClient, { type Connection } from 'mysql2/promise'
import type { Issued } from '../../src/backends/kind.ts'
import type { Hold, Tricks } from '../contract/open-kind.ts'

/** What the holder of a MySQL credential may do in order to keep it. */
export function mysqlTricks(): Tricks {
  return {
    'a session in a transaction': async (issued) => {
      const client = await login(issued)
      await client.query('BEGIN')
      await client.query('INSERT INTO orders VALUES (1)')
      return holdOf(issued, client)
    },
  }
}

async function login({ fields }: Issued): Promise<Connection> {
  const client = await mysqlClient.createConnection(String(fields?.['url']))
  client.on('error', () => undefined)
  return client
}

/** Works while one of its sessions reads, or a new one can be opened. */
function holdOf(issued: Issued, ...clients: readonly Connection[]): Hold {
  const reads = async (client: Connection) => {
    await client.query('SELECT id FROM orders LIMIT 1')
    return true
  }
  const relogin = async () => {
    const client = await login(issued)
    client.destroy()
    return true
  }
  return {
    async works() {
      const tries = [...clients.map(reads), relogin()].map((one) => one.catch(() => false))
      return (await Promise.all(tries)).includes(true)
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy()
    },
  }
}
