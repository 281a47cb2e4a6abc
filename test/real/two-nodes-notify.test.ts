import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const directory = mkdtempSync(join(tmpdir(), 'mayfly-notify-nodes-'))
let server: TestPostgres
let database: TestDatabase
let ops: WebhookReceiver
let a: TestApp
let b: TestApp
beforeAll(async () => {
  ops = await startWebhookReceiver(directory)
  server = await startPostgres()
  database = await server.createDatabase()
  const node = { databaseUrl: database.url, yaml: ops.yaml, jobs: true }
  a = await startApp(node)
  b = await startApp({ ...node, masterKeyFile: join(a.directory, 'master.key') })
})
afterAll(async () => {
  await b.close()
  await database.drop()
  await server.stop()
  await ops.close()
  rmSync(directory, { recursive: true })
})

const enroll = (node: TestApp, name: string) =>
  node.as(undefined).post('/v1/enroll', { name, public_key: newEnrollee().publicKey })
/** The agents that the messages name, each as often as it was named. */
const named = () =>
  ops.got
    .flatMap(({ data }) => data['requests'] as { agent: string }[])
    .map(({ agent }) => agent)
    .sort()
const all = async (...names: string[]) => expect.poll(named, { timeout: 30_000 }).toEqual(names)

test('of two nodes one tells, what both record, once; after it has stopped, the other goes on at once', async () => {
  await expect
    .poll(async () => (await a.core.store.receivers.find('ops'))?.holder, { timeout: 30_000 })
    .toBeDefined()
  const names = ['n0', 'n1', 'n2', 'n3', 'n4', 'n5']
  await Promise.all(names.map((name, n) => enroll(n % 2 === 0 ? a : b, name)))
  await all(...names)
  const before = await b.core.store.receivers.find('ops')
  await a.close()
  await enroll(b, 'n6')
  await all(...names, 'n6')
  // Whichever node held it.
  expect((await b.core.store.receivers.find('ops'))?.heldUntil).toBeGreaterThan(before?.heldUntil ?? 0)
}, 90_000)
