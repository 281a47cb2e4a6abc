import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startOwnPostgres } from '../support/postgres.ts'

/** A PostgreSQL server with the database `shop`, which has one table. */
export async function startShop() {
  const server = await startOwnPostgres()
  await query(server.url, 'CREATE DATABASE shop')
  const url = server.url.replace(/[^/]*$/, 'shop')
  await query(url, "CREATE TABLE items (id int, name text); INSERT INTO items VALUES (1, 'lamp')")
  // For psql without a URL, as a superuser on the server's machine has it: no variable names the user or a password.
  const user = userInfo().username
  await query(url, `CREATE ROLE "${user}" SUPERUSER LOGIN PASSWORD 'shop-owner'`)
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-shop-'))
  const passwords = join(folder, 'pgpass')
  await writeFile(passwords, `*:*:*:${user}:shop-owner\n`, { mode: 0o600 })
  const env = { PGHOST: server.host, PGPORT: String(server.port), PGPASSFILE: passwords }
  const stop = async () => {
    await server.stop()
    await rm(folder, { recursive: true })
  }
  return { url, env, port: server.port, stop }
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
