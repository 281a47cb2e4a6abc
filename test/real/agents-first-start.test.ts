import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { startApp } from '../support/app.ts'
import { newMasterKey } from '../support/master-key.ts'
import { startPostgres } from '../support/postgres.ts'

test('nodes that start on an empty store at once create one issuer key, and all sign with it', async () => {
  const server = await startPostgres()
  const database = await server.createDatabase()
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-first-'))
  const masterKeyFile = join(directory, 'master.key')
  await writeFile(masterKeyFile, newMasterKey(), { mode: 0o400 })
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    // Making an RSA key takes far longer than looking for one, so that every node finds none.
    const nodes = await Promise.all(
      [1, 2, 3].map(() => startApp({ databaseUrl: database.url, masterKeyFile })),
    )
    expect((await client.query('SELECT kid FROM issuer_keys')).rowCount).toBe(1)
    const [first, second] = nodes
    const agent = await first?.newAgent()
    if (first === undefined || second === undefined || agent === undefined) throw new Error('no node')
    for (const [at, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const token = await at.accessToken(agent)
      expect((await other.as(token).get('/v1/status')).status).toBe(200)
      expect((await at.as('').get('/.well-known/jwks.json')).body.keys).toHaveLength(1)
    }
    for (const node of nodes) await node.close()
  } finally {
    await client.end()
    await database.drop()
    await server.stop()
    await rm(directory, { recursive: true })
  }
})
