import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { Redis } from 'ioredis'
import mysql from 'mysql2'
import pg from 'pg'
import type { Door } from './stubborn-holder.ts'

/** The conventional variables of the kinds postgres, mysql and redis, as a command under `mayfly run` sees them. */
export type Variables = Readonly<Record<string, string>>

/** Classes 28000 and 28P01: no such role, it may not log in, or not with this password. */
const POSTGRES_REFUSALS = ['28000', '28P01']
/** ER_ACCESS_DENIED_ERROR and ER_ACCOUNT_HAS_BEEN_LOCKED of MariaDB. */
const MYSQL_REFUSALS = [1045, 4151]

const heard = (client: EventEmitter, event: string) => new Promise((resolve) => client.once(event, resolve))

/** Ends only with its session: it takes every other error for nothing. */
const ENDLESS = `DO $$ BEGIN LOOP
  BEGIN PERFORM pg_sleep(600); EXCEPTION WHEN OTHERS OR query_canceled THEN NULL; END;
END LOOP; END $$`

function postgres(given: Variables): Door {
  return {
    upstream: 'postgres',
    async enter() {
      const client = new pg.Client({
        host: given['PGHOST'],
        port: Number(given['PGPORT']),
        database: given['PGDATABASE'],
        user: given['PGUSER'],
        password: given['PGPASSWORD'],
      })
      client.on('error', () => undefined)
      const closed = heard(client, 'end')
      await client.connect()
      await client.query('SELECT 1')
      return {
        closed,
        stay: () => void client.query(ENDLESS).catch(() => undefined),
        leave: () => client.connection.stream.destroy(),
      }
    },
    isRefusal: (error) => POSTGRES_REFUSALS.includes(String((error as { code?: string }).code)),
  }
}

function mariadb(given: Variables): Door {
  return {
    upstream: 'mysql',
    async enter() {
      const client = mysql.createConnection({
        host: String(given['MYSQL_HOST']),
        port: Number(given['MYSQL_PORT']),
        database: String(given['MYSQL_DATABASE']),
        user: String(given['MYSQL_USER']),
        password: String(given['MYSQL_PASSWORD']),
      })
      client.on('error', () => undefined)
      const closed = heard((client as unknown as { stream: Socket }).stream, 'close')
      const query = (sql: string) =>
        new Promise<unknown>((resolve, reject) =>
          client.query(sql, (error, rows) => (error === null ? resolve(rows) : reject(error))),
        )
      try {
        await query('SELECT 1')
      } catch (error) {
        client.destroy()
        throw error
      }
      const stay = () => void query('SELECT SLEEP(600)').catch(() => undefined)
      return { closed, stay, leave: () => client.destroy() }
    },
    isRefusal: (error) => MYSQL_REFUSALS.includes(Number((error as { errno?: number }).errno)),
  }
}

function redis(given: Variables): Door {
  return {
    upstream: 'redis',
    async enter() {
      const client = new Redis(String(given['REDIS_URL']), {
        lazyConnect: true,
        retryStrategy: null,
        maxRetriesPerRequest: 0,
        disableClientInfo: true,
        enableReadyCheck: false,
      })
      let refusal: Error | undefined
      client.on('error', (error) => {
        refusal ??= error
      })
      const closed = heard(client, 'end')
      try {
        await client.connect()
        await client.get('shop:1')
      } catch (error) {
        client.disconnect()
        throw refusal ?? error
      }
      const stay = () => void client.blpop('shop:none', 0).catch(() => undefined)
      return { closed, stay, leave: () => client.disconnect() }
    },
    isRefusal: (error) => String(error).includes('WRONGPASS'),
  }
}

export const DOORS = [postgres, mariadb, redis]
