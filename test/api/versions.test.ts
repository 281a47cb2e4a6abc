import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROUTES } from '../../src/api/routes.ts'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

/** Paths at the root: the specification or a protocol puts them there, or they are no part of the interface. */
const AT_ROOT =
  /^\/(?:|health|readyz|metrics|openapi\.json|docs(?:\/scalar\.js)?|console(?:\/assets\/:file)?|oauth\/\w+|\.well-known\/[\w.-]+|backends\/:backend\/(?:revoked|token|\.well-known\/[\w.-]+))$/

test('the version is part of every path: /api/v1 and /v1, and nothing else', () => {
  const others = Object.keys(ROUTES)
    .map((name) => name.split(' ')[1] ?? '')
    .filter((path) => !/^\/(?:api\/v1|v1)\//.test(path) && !AT_ROOT.test(path))
  expect(others).toEqual([])
})

test('every path of the specification is there', () => {
  const specified = `POST /api/v1/credentials, GET /api/v1/credentials/:id, DELETE /api/v1/credentials/:id, GET /api/v1/backends,
    GET /api/v1/backends/:id, GET /health, GET /api/v1/audit, POST /oauth/token, GET /.well-known/openid-configuration,
    GET /.well-known/jwks.json, GET /v1/admin/agents, POST /v1/admin/agents, DELETE /v1/admin/agents/:name, GET /v1/status,
    POST /v1/credentials/:backend, GET /v1/credentials/:backend, GET /v1/active, DELETE /v1/active/:id, GET /v1/signing-key,
    GET /v1/admin/backends, POST /v1/admin/backends, DELETE /v1/admin/backends/:name, GET /v1/admin/tokens,
    DELETE /v1/admin/tokens/:id, GET /v1/admin/audit, GET /v1/admin/pending, POST /v1/admin/pending/:id/approve,
    POST /v1/admin/pending/:id/reject, POST /v1/admin/plugins/reload, POST /v1/admin/plugins/:name/reload, GET /v1/admin/keys`
  expect(Object.keys(ROUTES)).toEqual(expect.arrayContaining(specified.split(/,\s+/)))
})

test('the paths of OAuth and discovery are at the root, not under /v1', async () => {
  for (const path of ['/v1/oauth/token', '/v1/.well-known/jwks.json', '/v1/.well-known/openid-configuration'])
    expect((await app.as(undefined).get(path)).status).toBe(404)
})

test('no reply has Deprecation or Sunset, because no version is deprecated', async () => {
  for (const path of ['/health', '/api/v1/backends', '/v1/admin/agents']) {
    const { headers } = await app.admin('GET', path)
    expect([headers.get('deprecation'), headers.get('sunset')]).toEqual([null, null])
  }
})
