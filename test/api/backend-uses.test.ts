import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

/** Rules of use of a backend decide where its secrets go. */
let app: TestApp
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  await app.newBackend({ name: 'gateway' })
})
afterAll(() => app.close())

const USES = { deny: [{ methods: ['DELETE'], path: '/v1/**' }] }
const change = async (scopes: readonly string[], uses: unknown) => {
  const { client } = await app.newAgent({ scopes })
  return client.put('/v1/admin/backends/gateway', { uses })
}

test('only the local host and holders of admin:* set rules of use', async () => {
  const refused = await change(['admin:backends:write', 'gateway'], USES)
  expect(refused.status, refused.text).toBe(403)
  expect((await app.local.get('/v1/admin/backends/gateway')).body.uses).toBeUndefined()
  for (const reply of [
    await change(['admin:*', 'gateway'], USES),
    await app.local.put('/v1/admin/backends/gateway', { uses: USES }),
  ])
    expect(reply, reply.text).toMatchObject({ status: 200, body: { uses: USES } })
})
