import pg from 'pg'
import { startOwnPostgres } from '../support/postgres.ts'

/** A PostgreSQL server with the database `shop`, which has one table. */
export async function startShop() {
  const server = await startOwnPostgres()
  await query(server.url, 'CREATE DATABASE shop')
  const url = server.url.replace(/[^/]*$/, 'shop')
  await query(url, "CREATE TABLE items (id int, name text); INSERT INTO items VALUES (1, 'lamp')")
  // For psql without a URL, as a superuser on the server's machine has it.
  const env = {
    PGHOST: server.host,
    PGPORT: String(server.port),
    PGUSER: server.username,
    PGPASSWORD: server.password ?? '',
  }
  return { url, env, port: server.port, stop: () => server.stop() }
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}
