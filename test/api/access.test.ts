import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES, type RouteName, type RouteRule } from '../../src/api/routes.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { commandByBrowser } from '../support/command.ts'
import { newPerson } from '../support/person.ts'

/**
 * Who may call each route, from the specification and the decisions alone: written by hand, so that a wrong entry in
 * `ROUTES` fails here.
 */
const NEEDED: Record<RouteName, string> = {
  'GET /': 'public',
  'GET /health': 'public',
  'GET /readyz': 'public',
  'GET /metrics': 'admin:metrics:read',
  'GET /openapi.json': 'public',
  'GET /docs': 'public',
  'GET /docs/scalar.js': 'public',
  'GET /.well-known/openid-configuration': 'public',
  'GET /.well-known/oauth-authorization-server': 'public',
  'GET /.well-known/jwks.json': 'public',
  'GET /backends/:backend/.well-known/openid-configuration': 'public',
  'GET /backends/:backend/.well-known/jwks.json': 'public',
  'GET /backends/:backend/revoked': 'public',
  'GET /backends/:backend/token': 'public',
  'POST /oauth/token': 'public',
  'POST /oauth/device_authorization': 'public',
  'POST /oauth/introspect': 'public',
  'POST /oauth/revoke': 'public',
  'POST /api/v1/credentials': 'agent',
  'GET /api/v1/credentials/:id': 'reader',
  'DELETE /api/v1/credentials/:id': 'reader',
  'GET /api/v1/backends': 'reader',
  'GET /api/v1/backends/:id': 'reader',
  'GET /api/v1/audit': 'reader',
  'GET /v1/status': 'agent',
  'POST /v1/credentials/:backend': 'agent',
  'GET /v1/credentials/:backend': 'agent',
  'GET /v1/active': 'agent',
  'DELETE /v1/active/:id': 'agent',
  'GET /v1/signing-key': 'agent',
  'POST /v1/sign': 'agent',
  'DELETE /v1/self': 'agent',
  'DELETE /v1/login': 'agent',
  'POST /v1/request': 'agent',
  'GET /v1/request/:id': 'agent',
  'POST /v1/runs': 'agent',
  'GET /v1/runs': 'agent',
  'GET /v1/runs/:id': 'agent',
  'POST /v1/runs/:id/heartbeat': 'agent',
  'GET /v1/runs/:id/events': 'agent',
  'POST /v1/runs/:id/requests': 'agent',
  'GET /v1/runs/:id/requests': 'agent',
  'DELETE /v1/runs/:id': 'agent',
  'GET /v1/admin/runs': 'admin:agents:read',
  'GET /v1/admin/runs/:id': 'admin:agents:read',
  'GET /v1/admin/runs/:id/requests': 'admin:agents:read',
  'DELETE /v1/admin/runs/:id': 'admin:agents:write',
  'POST /v1/enroll': 'public',
  'GET /v1/enroll/:id/status': 'public',
  'GET /v1/admin/agents': 'admin:agents:read',
  'POST /v1/admin/agents': 'admin:agents:write',
  'GET /v1/admin/agents/:name': 'admin:agents:read',
  'PATCH /v1/admin/agents/:name': 'admin:agents:write',
  'POST /v1/admin/agents/:name/rotate': 'admin:agents:write',
  'DELETE /v1/admin/agents/:name': 'admin:agents:write',
  'GET /v1/admin/backends': 'admin:backends:read',
  'POST /v1/admin/backends': 'admin:backends:write',
  'GET /v1/admin/backends/:name': 'admin:backends:read',
  'PUT /v1/admin/backends/:name': 'admin:backends:write',
  'DELETE /v1/admin/backends/:name': 'admin:backends:write',
  'POST /v1/admin/backends/:name/check': 'admin:backends:write',
  'POST /v1/admin/backends/:name/try': 'admin:backends:write',
  'POST /v1/admin/backends/:name/rotate-root': 'admin:backends:write',
  'POST /v1/admin/backends/:name/reconcile': 'admin:backends:write',
  'GET /v1/admin/kinds': 'admin:backends:read',
  'GET /v1/admin/tokens': 'admin:tokens:read',
  'GET /v1/admin/tokens/:id': 'admin:tokens:read',
  'POST /v1/admin/tokens/revoke': 'admin:tokens:write',
  'DELETE /v1/admin/tokens/:id': 'admin:tokens:write',
  'GET /v1/admin/activity': 'admin:audit:read',
  'GET /v1/admin/overview': 'admin:metrics:read',
  'GET /v1/admin/audit': 'admin:audit:read',
  'GET /v1/admin/events': 'reader',
  'POST /v1/admin/audit/export': 'admin:audit:read',
  'GET /v1/admin/audit/export': 'admin:audit:read',
  'GET /v1/admin/pending': 'admin:enrollments:read',
  'GET /v1/admin/pending/:id': 'admin:enrollments:read',
  'POST /v1/admin/pending/:id/approve': 'admin:enrollments:write',
  'POST /v1/admin/pending/:id/reject': 'admin:enrollments:write',
  'GET /v1/admin/policies': 'admin:policies:read',
  'GET /v1/admin/policies/explain': 'admin:policies:read',
  'GET /v1/admin/plugins': 'admin:plugins:write',
  'POST /v1/admin/plugins': 'admin:plugins:write',
  'DELETE /v1/admin/plugins/:name': 'admin:plugins:write',
  'POST /v1/admin/plugins/reload': 'admin:plugins:write',
  'POST /v1/admin/plugins/:name/reload': 'admin:plugins:write',
  'POST /v1/admin/notify/:name/test': 'admin:notify:write',
  'GET /v1/admin/keys': 'admin:keys:read',
  'GET /v1/admin/keys/issuer': 'admin:keys:read',
  'POST /v1/admin/keys/rotate': 'admin:keys:write',
  'GET /v1/admin/nodes': 'admin:metrics:read',
  'GET /v1/admin/settings': 'admin:server:read',
  'POST /v1/admin/reload': 'admin:server:write',
  'GET /v1/admin/me': 'reader',
  'GET /v1/admin/operators': 'admin:operators:read',
  'POST /v1/admin/operators': 'admin:operators:write',
  'GET /v1/admin/operators/:id': 'reader',
  'PATCH /v1/admin/operators/:id': 'admin:operators:write',
  'DELETE /v1/admin/operators/:id': 'admin:operators:write',
  'POST /v1/admin/operators/:id/invitation': 'admin:operators:write',
  'GET /v1/admin/operators/:id/passkeys': 'reader',
  'DELETE /v1/admin/operators/:id/passkeys/:passkey': 'reader',
  'DELETE /v1/admin/operators/:id/sessions': 'reader',
  'GET /v1/admin/sessions': 'reader',
  'DELETE /v1/admin/sessions/:id': 'reader',
  'POST /v1/admin/console/links': 'admin:operators:write',
  'GET /v1/console/login': 'public',
  'POST /v1/console/login/sso': 'public',
  'POST /v1/console/login/sso/finish': 'public',
  'POST /v1/console/confirm/sso': 'session',
  'POST /v1/console/login/link': 'public',
  'POST /v1/console/login/options': 'public',
  'POST /v1/console/login/passkey': 'public',
  'POST /v1/console/logout': 'session',
  'POST /v1/console/passkeys/options': 'session',
  'POST /v1/console/passkeys': 'session',
  'POST /v1/console/commands/look': 'session',
  'POST /v1/console/commands/allow': 'session',
  'POST /v1/console/commands/deny': 'session',
  'GET /console': 'public',
  'GET /console/assets/:file': 'public',
}

/** Operators read and end what is their own, or follow what they may read; an agent has nothing there, and needs the scope. */
const OWN_OF_OPERATORS: Partial<Record<RouteName, string>> = {
  'GET /v1/admin/operators/:id': 'admin:operators:read',
  'GET /v1/admin/operators/:id/passkeys': 'admin:operators:read',
  'DELETE /v1/admin/operators/:id/passkeys/:passkey': 'admin:operators:write',
  'DELETE /v1/admin/operators/:id/sessions': 'admin:operators:write',
  'GET /v1/admin/sessions': 'admin:operators:read',
  'DELETE /v1/admin/sessions/:id': 'admin:operators:write',
  'GET /v1/admin/events': 'admin:audit:read',
}

const ADMIN_SCOPES = [...new Set(Object.values(NEEDED))].filter((needed) => needed.startsWith('admin:'))

let app: TestApp
let plain: NewAgent
const holders = new Map<string, NewAgent>()
let almost: Map<string, NewAgent>
let jwtOf: Map<string, string>
/** The tokens of commands of an operator with `admin:*`, and of one without any scope. */
let commands: { strong: string; weak: string }

beforeAll(async () => {
  app = await startApp()
  plain = await app.newAgent({ scopes: ['*'] })
  for (const scope of [...ADMIN_SCOPES, 'admin:*', 'admin'])
    holders.set(scope, await app.newAgent({ scopes: [scope] }))
  almost = new Map()
  for (const scope of ADMIN_SCOPES) {
    const others = [...ADMIN_SCOPES.filter((other) => other !== scope), `${scope}:x`, '*']
    almost.set(scope, await app.newAgent({ scopes: others }))
  }
  const strong = await commandByBrowser(app, await newPerson(app))
  const weak = await commandByBrowser(app, await newPerson(app, { scopes: [], backend_scopes: [] }))
  commands = { strong: strong.token, weak: weak.token }
  jwtOf = new Map()
  for (const scope of ADMIN_SCOPES) jwtOf.set(scope, await app.accessToken(holders.get(scope) as NewAgent))
})
afterAll(() => app.close())

/** A request that passes the gate harmlessly: ids and names that nothing has, bodies that are refused. */
async function knock(
  name: RouteName,
  token: string | undefined,
): Promise<{ status: number; code: string | undefined; challenge: string | null }> {
  const [method, path] = name.split(' ') as [string, string]
  const url = path
    .replace(':id', `cred_${'0'.repeat(26)}`)
    .replace(':name', 'nobody')
    .replace(':backend', 'nowhere')
  const response = await fetch(app.url + url, {
    method,
    headers: token === undefined ? {} : { authorization: token },
  })
  // A stream of events has no end.
  const text = response.ok && name === 'GET /v1/admin/events' ? '' : await response.text()
  if (text === '') await response.body?.cancel()
  let code: string | undefined
  try {
    code = JSON.parse(text).error?.code
  } catch {}
  return { status: response.status, code, challenge: response.headers.get('www-authenticate') }
}

/** Whether the gate let it through: what comes after is not asked here. */
const passed = ({ code }: { code: string | undefined }) =>
  code === undefined || !['unauthorized', 'insufficient_scope', 'misdirected_request'].includes(code)

test('the route table gives every route the access of this table', () => {
  const table = Object.fromEntries(
    Object.entries(ROUTES as Record<string, RouteRule>).map(([name, rule]) => [
      name,
      rule.access === 'admin' ? rule.scope : rule.access,
    ]),
  )
  expect(table).toEqual(NEEDED)
})

const rows = Object.entries(NEEDED) as [RouteName, string][]
/** Let in, these end what the other rows need: their own suites let them in. */
const HARMFUL = ['POST /v1/admin/keys/rotate', 'DELETE /v1/self']

describe.each(rows)('%s', (name, needed) => {
  test('no token', async () => {
    // Sent as by a browser elsewhere, so that the local host's trust does not apply.
    const [method, path] = name.split(' ') as [string, string]
    const reply = await app.raw({
      method,
      path: path.replace(/:\w+/, 'nobody'),
      headers: { 'x-forwarded-for': '1.2.3.4' },
    })
    const body = reply.text.startsWith('{') ? JSON.parse(reply.text) : {}
    if (needed === 'public') {
      if (name === 'GET /v1/enroll/:id/status') expect(reply.status).toBe(401)
      else expect(body.error?.code).not.toBe('unauthorized')
      return
    }
    expect([reply.status, body.error?.code]).toEqual([401, 'unauthorized'])
    expect(reply.headers['www-authenticate']).toBe('Bearer realm="mayfly"')
  })

  test('a bad token', async () => {
    const bads = [
      `Bearer ckr_${'a'.repeat(48)}`,
      'Bearer eyJhbGciOiJub25lIn0.e30.',
      'Bearer ',
      'Basic YTpi',
      'nonsense',
      `Bearer ${'f'.repeat(64)}`,
      `Bearer mop_${'f'.repeat(64)}`,
      'Bearer mop_',
    ]
    for (const bad of bads) {
      const reply = await knock(name, bad)
      if (needed === 'public') {
        expect(reply.code).not.toBe('insufficient_scope')
        continue
      }
      expect([bad, reply.status, reply.code]).toEqual([bad, 401, 'unauthorized'])
      expect(reply.challenge).toBe('Bearer realm="mayfly", error="invalid_token"')
    }
  })

  if (!HARMFUL.includes(name))
    test('an agent without an admin scope', async () => {
      const reply = await knock(name, `Bearer ${plain.token}`)
      if (needed === 'session') {
        expect([reply.status, reply.code]).toEqual([401, 'unauthorized'])
        return
      }
      const own = OWN_OF_OPERATORS[name]
      if (own !== undefined) {
        expect([reply.status, reply.code]).toEqual([403, 'insufficient_scope'])
        expect(passed(await knock(name, `Bearer ${(holders.get(own) as NewAgent).token}`))).toBe(true)
        return
      }
      if (!needed.startsWith('admin:')) {
        expect(passed(reply) || name === 'GET /v1/enroll/:id/status').toBe(true)
        return
      }
      expect([reply.status, reply.code]).toEqual([403, 'insufficient_scope'])
      expect(reply.challenge).toBe(`Bearer realm="mayfly", error="insufficient_scope", scope="${needed}"`)
    })

  if (needed.startsWith('admin:'))
    test('every other admin scope does not help', async () => {
      const reply = await knock(name, `Bearer ${(almost.get(needed) as NewAgent).token}`)
      expect([reply.status, reply.code]).toEqual([403, 'insufficient_scope'])
    })

  if (needed.startsWith('admin:') && !HARMFUL.includes(name))
    test('the scope, by opaque token and by JWT; and what covers it', async () => {
      const bearers = [(holders.get(needed) as NewAgent).token, jwtOf.get(needed) as string]
      for (const wide of ['admin:*', 'admin']) bearers.push((holders.get(wide) as NewAgent).token)
      for (const bearer of bearers) expect(passed(await knock(name, `Bearer ${bearer}`))).toBe(true)
    })

  if (!HARMFUL.includes(name) && needed !== 'public')
    test('the token of a command: what operators reach, and no route of agents or of the page', async () => {
      const strong = await knock(name, `Bearer ${commands.strong}`)
      const weak = await knock(name, `Bearer ${commands.weak}`)
      if (needed === 'agent' || needed === 'session') {
        for (const reply of [strong, weak]) {
          expect([reply.status, reply.code]).toEqual([401, 'unauthorized'])
          expect(reply.challenge).toBe('Bearer realm="mayfly", error="invalid_token"')
        }
        return
      }
      expect(passed(strong)).toBe(true)
      if (needed.startsWith('admin:')) expect([weak.status, weak.code]).toEqual([403, 'insufficient_scope'])
    })

  if (!HARMFUL.includes(name))
    test('the local host without credentials', async () => {
      const reply = await knock(name, undefined)
      if (needed === 'agent' || needed === 'session')
        expect([reply.status, reply.code]).toEqual([401, 'unauthorized'])
      else expect(passed(reply) || name === 'GET /v1/enroll/:id/status').toBe(true)
    })
})

test('a * matches everything below it: admin:agents:* reads and writes agents, and nothing else', async () => {
  const agent = await app.newAgent({ scopes: ['admin:agents:*'] })
  expect((await agent.client.get('/v1/admin/agents')).status).toBe(200)
  expect((await agent.client.post('/v1/admin/agents', { name: 'below' })).status).toBe(200)
  expect((await agent.client.delete('/v1/admin/agents/below')).status).toBe(204)
  expect((await agent.client.get('/v1/admin/backends')).status).toBe(403)
})

test('both methods give the same access', async () => {
  const backend = await app.newBackend()
  const agent = await app.newAgent({ scopes: [backend, 'admin:agents:read'] })
  const jwt = await app.accessToken(agent)
  for (const token of [agent.token, jwt]) {
    const client = app.as(token)
    expect((await client.get('/v1/status')).body.scopes).toEqual([backend, 'admin:agents:read'])
    expect((await client.get('/v1/admin/agents')).status).toBe(200)
    const { id } = (await client.post('/api/v1/credentials', { backend })).body
    expect((await client.delete(`/v1/active/${id}`)).status).toBe(204)
    expect((await client.get('/v1/signing-key')).status).toBe(200)
  }
})

test('the scheme is read without regard to its first letter’s case, the token exactly', async () => {
  for (const [header, status] of [
    [`bearer ${plain.token}`, 200],
    [`Bearer ${plain.token}`, 200],
    [`Bearer  ${plain.token}`, 401],
    [`Bearer ${plain.token.toUpperCase()}`, 401],
    [`Bearer ${plain.token}0`, 401],
    [plain.token, 401],
  ] as const)
    expect((await knock('GET /v1/status', header)).status).toBe(status)
})
