import mysqlClient, { type Connection } from 'mysql2/promise'
import type { Issued } from '../../src/backends/kind.ts'
import type { Hold, Tricks } from '../contract/open-kind.ts'
import { halfLogin } from './mariadb-login.ts'
import type { MariadbServer } from './mariadb-server.ts'

/** An application in which the sessions of others can run statements as their definer. */
const APPLICATION = [
  'CREATE TABLE shop.stock (id INT PRIMARY KEY, n INT)',
  'INSERT INTO shop.stock VALUES (1, 0), (2, 0)',
  'CREATE TABLE shop.sales (id INT PRIMARY KEY, n INT)',
  'INSERT INTO shop.sales VALUES (1, 0)',
  'CREATE TRIGGER shop.sold BEFORE UPDATE ON shop.sales FOR EACH ROW UPDATE shop.stock SET n = n + 1 WHERE id = NEW.id',
  'CREATE FUNCTION shop.wait(seconds INT) RETURNS INT DETERMINISTIC SQL SECURITY DEFINER RETURN SLEEP(seconds)',
  'CREATE SQL SECURITY DEFINER VIEW shop.waiting AS SELECT shop.wait(600) AS waited',
]

export async function prepareTricks(server: MariadbServer): Promise<void> {
  for (const statement of APPLICATION) await server.sql(statement)
}

/** What the holder of a MySQL credential may do in order to keep it, after `prepareTricks`. */
export function mysqlTricks(server: MariadbServer): Tricks {
  const open = (issued: Issued) => openHolder(server, issued)
  return {
    'a session in a transaction, with a lock on a row and an open HANDLER': async (issued) => {
      const holder = open(issued)
      const client = await holder.login()
      await client.query('BEGIN')
      await client.query('INSERT INTO orders VALUES (1)')
      await client.query('HANDLER invoices OPEN')
      return holder
    },
    'a session that has the locks of its own name': async (issued) => {
      const holder = open(issued)
      const client = await holder.login()
      const name = String(issued.fields?.['username'])
      for (const lock of [name, `${name}.end`]) await client.query('SELECT GET_LOCK(?, 0)', [lock])
      return holder
    },
    'a session that waits in a trigger for a transaction prepared by another one': async (issued) => {
      const holder = open(issued)
      const preparing = await holder.login()
      const xid = `'${issued.fields?.['username']}'`
      for (const statement of [
        `XA START ${xid}`,
        'UPDATE stock SET n = 7 WHERE id = 1',
        `XA END ${xid}`,
        `XA PREPARE ${xid}`,
      ])
        await preparing.query(statement)
      preparing.destroy()
      const waiting = await holder.login()
      await waiting.query('SET innodb_lock_wait_timeout = 600')
      await holder.hide(waiting, 'UPDATE sales SET n = 7 WHERE id = 1')
      return {
        works: holder.works,
        async [Symbol.asyncDispose]() {
          await holder[Symbol.asyncDispose]()
          await server.sql(`XA ROLLBACK ${xid}`)
        },
      }
    },
    'a session in a view that runs a function of its definer': async (issued) => {
      const holder = open(issued)
      await holder.hide(await holder.login(), 'SELECT * FROM waiting')
      return holder
    },
    'a session that does not read its answer': async (issued) => {
      const holder = open(issued)
      const client = await holder.login()
      await client.query('SELECT 1')
      streamOf(client).pause()
      const row = "SELECT REPEAT('x', 16000000)"
      client.query(Array.from({ length: 8 }, () => row).join(' UNION ALL ')).catch(() => undefined)
      await holder.shows(client, "STATE = 'Writing to net'")
      return holder
    },
    'a session that is just logging in': async (issued) => {
      const socket = await halfLogin(server.port, String(issued.fields?.['username']))
      return {
        works: async () => !socket.destroyed && !socket.readableEnded,
        async [Symbol.asyncDispose]() {
          socket.destroy()
        },
      }
    },
    'sessions that are opened in a loop': async (issued) => {
      const holder = open(issued)
      const stopped = new AbortController()
      const loop = async () => {
        while (!stopped.signal.aborted) {
          const client = await holder.login()
          await client.query('SELECT id FROM orders LIMIT 1')
        }
      }
      await holder.login()
      const loops = [loop(), loop()].map((one) => one.catch(() => undefined))
      return {
        works: holder.works,
        async [Symbol.asyncDispose]() {
          stopped.abort()
          await Promise.all(loops)
          await holder[Symbol.asyncDispose]()
        },
      }
    },
  }
}

interface Holder extends Hold {
  login(): Promise<Connection>
  /** Waits until the session shows this in PROCESSLIST. */
  shows(client: Connection, what: string): Promise<void>
  /** Begins a statement that shows another user than that of the session, and does not end. */
  hide(client: Connection, statement: string): Promise<void>
}

const streamOf = (client: Connection) =>
  (client as unknown as { connection: { stream: import('node:net').Socket } }).connection.stream

/** Works while the server has one of its sessions, or admits a new one. */
function openHolder(server: MariadbServer, { fields }: Issued): Holder {
  const clients: Connection[] = []
  const login = async () => {
    const client = await mysqlClient.createConnection(String(fields?.['url']))
    client.on('error', () => undefined)
    clients.push(client)
    return client
  }
  const find = (ids: readonly unknown[], what = 'TRUE') =>
    server.sql(`SELECT 1 FROM information_schema.PROCESSLIST WHERE ID IN (${ids.join()}) AND ${what}`)
  const shows: Holder['shows'] = async (client, what) => {
    while ((await find([client.threadId], what)).length === 0);
  }
  return {
    login,
    shows,
    async hide(client, statement) {
      client.query(statement).catch(() => undefined)
      await shows(client, `USER = 'root'`)
    },
    async works() {
      const known = clients.map(({ threadId }) => threadId)
      if ((await find(known)).length > 0) return true
      return login().then(
        () => true,
        () => false,
      )
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy()
    },
  }
}
