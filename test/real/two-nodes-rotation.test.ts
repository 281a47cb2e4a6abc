import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { eventually, startApp } from '../support/app.ts'
import { startPostgres } from '../support/postgres.ts'

test('of two nodes that rotate the keys at once, what the first one made does not outlive the second', async () => {
  const server = await startPostgres()
  const database = await server.createDatabase()
  const a = await startApp({ databaseUrl: database.url })
  const b = await startApp({ databaseUrl: database.url, masterKeyFile: join(a.directory, 'master.key') })
  const holder = new pg.Client({ connectionString: database.url })
  await holder.connect()
  try {
    await holder.query('BEGIN')
    await holder.query('SELECT kid FROM issuer_keys FOR UPDATE')
    const rotations = [a, b].map((node) => node.admin('POST', '/v1/admin/keys/rotate'))
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    await eventually(async () => expect((await holder.query(waiting)).rowCount).toBe(2))
    await holder.query('COMMIT')
    expect((await Promise.all(rotations)).map(({ status }) => status)).toEqual([200, 200])
    expect((await holder.query('SELECT kid FROM issuer_keys')).rowCount).toBe(1)
    for (const node of [a, b])
      expect((await node.as('').get('/.well-known/jwks.json')).body.keys).toHaveLength(1)
  } finally {
    await holder.end()
    await b.close()
    await a.close()
    await database.drop()
    await server.stop()
  }
})
