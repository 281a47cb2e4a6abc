import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const directory = mkdtempSync(join(tmpdir(), 'mayfly-notify-api-'))
let ops: WebhookReceiver
let app: TestApp
beforeAll(async () => {
  ops = await startWebhookReceiver(directory)
  app = await startApp({ yaml: ops.yaml, jobs: true })
})
afterAll(async () => {
  await app.close()
  await ops.close()
  rmSync(directory, { recursive: true })
})

test('a backend whose upstream is not there is told, with its name and a closed reason', async () => {
  const config = { host: '127.0.0.1', port: 1, database: 'shop', username: 'mayfly', local: true }
  const created = await app.local.post('/v1/admin/backends?check=false', {
    type: 'postgres',
    name: 'orders',
    config: { ...config, password: 'never told' },
    rotate_root_after: '90d',
  })
  expect([created.status, created.body.rotate_root_after]).toEqual([200, '2160h'])
  const agent = await app.newAgent({ scopes: ['orders'] })
  await agent.client.post('/v1/credentials/orders', { scopes: ['shop:read'] })
  await expect.poll(() => ops.got.map(({ type }) => type), { timeout: 30_000 }).toEqual(['backend.down'])
  expect(ops.got[0]?.data).toMatchObject({ backend: 'orders', reason: 'refused' })
  expect(JSON.stringify(ops.got)).not.toContain('never told')
})

test('the age of a root secret is kept, changed and removed with the other rules of a backend', async () => {
  const put = async (body: unknown) =>
    (await app.local.put('/v1/admin/backends/orders?check=false', body)).body.rotate_root_after
  expect(await put({ description: 'the shop' })).toBe('2160h')
  expect(await put({ rotate_root_after: '7d' })).toBe('168h')
  expect(await put({ rotate_root_after: null })).toBeUndefined()
  const { status } = await app.local.put('/v1/admin/backends/orders', { rotate_root_after: 'soon' })
  expect(status).toBe(400)
})
