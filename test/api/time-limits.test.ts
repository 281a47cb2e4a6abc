import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ argv: { upstreamTimeout: '1m' } })
})
afterAll(() => app.close())

test('keeps a connection open while its request may wait for the upstream twice', () => {
  // Node closes a connection that has had no traffic for this long, without a reply.
  expect(app.app.http.server.server.timeout).toBe(135_000)
})
