import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { startPostgres } from '../support/postgres.ts'

test('the start records the bounds of agents that an earlier build admitted', async () => {
  const server = await startPostgres()
  const database = await server.createDatabase()
  const yaml = 'policies: [{ name: ci, pattern: "ci-*", scopes: [api], auto_approve: true, max_ttl: 15m }]'
  const first = await startApp({ databaseUrl: database.url, yaml })
  const { publicKey } = newEnrollee()
  await first.as(undefined).post('/v1/enroll', { name: 'ci-1', public_key: publicKey })
  const read = async () => (await first.core.store.agents.findByName('ci-1'))?.bounds
  expect(await read()).toEqual({ maxTtlMs: 900_000 })
  await first.core.store.commit([
    { op: 'run', sql: 'UPDATE agents SET bounds = NULL', params: [], rows: 1 },
    { op: 'invalidate' },
  ])
  const masterKeyFile = join(first.directory, 'master.key')
  const second = await startApp({ databaseUrl: database.url, masterKeyFile, yaml })
  expect(await read()).toEqual({ maxTtlMs: 900_000 })
  await second.close()
  await first.close()
  await database.drop()
  await server.stop()
})
