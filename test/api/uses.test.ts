import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Kind } from '../../src/backends/kind.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const OF_KIND = {
  protocol: 'http',
  name: 'api',
  origin: 'https://orders.example.com',
  local: false,
  places: [{ in: 'body', name: 'secret', maxBytes: 1024 }],
  allow: [{ methods: ['GET'], path: '/v1/**' }],
  deny: [],
} as const
const OWN = {
  protocol: 'http',
  name: 'own',
  origin: 'https://own.example.com',
  places: [{ in: 'header', name: 'authorization' }],
  allow: [{ methods: ['*'], path: '/**' }],
}

function certificate(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-ca-'))
  const out = ['-keyout', join(directory, 'key'), '-out', join(directory, 'ca.pem')]
  const args = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=ca',
  ]
  execFileSync('openssl', [...args, ...out], { stdio: 'ignore' })
  return readFileSync(join(directory, 'ca.pem'), 'utf8')
}

describe.each(DIALECTS)('uses on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  const seen: (readonly string[])[] = []
  beforeAll(async () => {
    app = await startApp({ dialect })
    const { kinds } = app.core.backends
    const jwt = kinds.get('jwt') as Kind & { uses?: Kind['uses'] }
    app.core.backends.replaceKinds([
      ...[...kinds.values()].filter(({ type }) => type !== 'jwt'),
      {
        ...jwt,
        serviceAccounts: ['orders-d'],
        uses: (_config, scopes) => {
          seen.push(scopes)
          if (scopes.includes('broken')) throw new Error('a bug of this kind')
          return [OF_KIND]
        },
      },
    ])
    await app.newBackend({ name: 'orders' })
    ada = await app.newAgent({ name: 'ada', scopes: ['orders', 'plain'] })
  })
  afterAll(() => app.close())

  const wire = { ...OF_KIND, places: [{ in: 'body', name: 'secret', max_bytes: 1024 }] }
  const issue = (body: object, headers?: Record<string, string>) =>
    ada.client.post('/api/v1/credentials', { backend: 'orders', ...body }, headers)
  const change = (uses: unknown, client = app.local) => client.put('/v1/admin/backends/orders', { uses })

  test('come with an issue that asks for them, on both routes, and with no other', async () => {
    seen.length = 0
    const reply = await issue({ uses: true, scopes: ['orders:read'] })
    expect([reply.status, reply.body.uses]).toEqual([201, [wire]])
    expect(seen).toEqual([['read']])
    expect((await ada.client.post('/v1/credentials/orders', { uses: true })).body.uses).toEqual([wire])
    for (const uses of [false, undefined]) expect((await issue({ uses })).body).not.toHaveProperty('uses')
    expect((await ada.client.post('/v1/credentials/orders', {})).body).not.toHaveProperty('uses')
    expect(seen).toHaveLength(2)
    for (const uses of ['true', 1, null]) expect((await issue({ uses })).status).toBe(400)
  })

  test('come with a repeated issue, too', async () => {
    const key = { 'idempotency-key': `key-${dialect}` }
    const first = await issue({ uses: true }, key)
    const again = await issue({ uses: true }, key)
    expect([again.body.id, again.body.uses]).toEqual([first.body.id, [wire]])
    expect((await issue({}, key)).body.error.code).toBe('conflict')
  })

  test('issue nothing where they cannot be made', async () => {
    const before = (await app.local.get('/v1/admin/backends/orders')).body.live
    const reply = await issue({ uses: true, scopes: ['orders:broken'] })
    expect([reply.status, reply.body.error.code]).toEqual([500, 'internal_error'])
    expect((await app.local.get('/v1/admin/backends/orders')).body.live).toBe(before)
  })

  test('have what an administrator names, which shows in the backend and is recorded', async () => {
    const rules = {
      uses: [{ ...OWN, ca: certificate() }],
      allow: [{ methods: ['POST'], path: '/graphql', caseless: true, use: 'api' }],
    }
    const changed = await change(rules)
    expect(changed.body.uses).toEqual({ ...rules, uses: [{ ...rules.uses[0], local: false, deny: [] }] })
    expect(changed.body).not.toHaveProperty('warnings')
    expect((await app.local.get('/v1/admin/backends/orders')).body.uses).toEqual(changed.body.uses)
    expect((await app.local.get('/v1/admin/audit?action=backend.changed')).body[0].details).toEqual({
      fields: ['uses'],
    })
    const named = { ...rules.uses[0], local: false, deny: [], allow: [{ ...OWN.allow[0], named: true }] }
    expect((await issue({ uses: true })).body.uses).toEqual([
      {
        ...wire,
        allow: [{ methods: ['POST'], path: '/graphql', caseless: true, named: true }, ...wire.allow],
      },
      named,
    ])
    // What agents see of the backend itself does not have them.
    expect((await ada.client.get('/api/v1/backends/orders')).body).not.toHaveProperty('uses')
    expect((await change(null)).body).not.toHaveProperty('uses')
    expect((await issue({ uses: true })).body.uses).toEqual([wire])
  })

  test('say of a local upstream whose listener may get the secret', async () => {
    const { body } = await change({ uses: [{ ...OWN, local: true, accounts: ['www-data'] }] })
    expect(body.uses.uses[0].accounts).toEqual(['www-data'])
    const [ofKind, named] = (await issue({ uses: true })).body.uses
    expect(named.accounts).toEqual(['orders-d', 'www-data'])
    expect(ofKind).not.toHaveProperty('accounts')
    const odd = await change({ uses: [{ ...OWN, local: true, accounts: ['a b'] }] })
    expect([odd.status, odd.body.error.message]).toEqual([400, expect.stringContaining('accounts')])
    await change(null)
  })

  test('warn of a rule for a use that there is not', async () => {
    const { body } = await change({ deny: [{ methods: ['*'], path: '/', use: 'apii' }] })
    expect(body.warnings).toEqual([expect.stringContaining('"apii"')])
    await change(null)
  })

  test('are set by full administrators alone, and removed by who holds the backend', async () => {
    const some = await app.newAgent({ scopes: ['admin:backends:write', 'admin:backends:read'] })
    const whole = await app.newAgent({ scopes: ['admin:backends:write', 'orders:*'] })
    const full = await app.newAgent({ scopes: ['admin:*'] })
    const rules = { deny: [{ methods: ['DELETE'], path: '/**' }] }
    for (const { client } of [some, whole]) {
      const reply = await change(rules, client)
      expect([reply.status, reply.body.error.code]).toEqual([403, 'insufficient_scope'])
      const body = { type: 'jwt', name: `new-${dialect}`, config: { audience: 'x' }, uses: rules }
      expect((await client.post('/v1/admin/backends', body)).status).toBe(403)
    }
    expect((await change(rules, full.client)).status).toBe(200)
    // As they are: whoever sends back what was shown changes nothing.
    expect((await change(rules, some.client)).status).toBe(200)
    expect((await some.client.put('/v1/admin/backends/orders', { description: 'x' })).body.uses).toEqual(
      rules,
    )
    expect((await change(null, some.client)).status).toBe(403)
    expect((await change(null, whole.client)).status).toBe(200)
    const denied = (await app.local.get('/v1/admin/audit?action=auth.failed')).body
    expect(denied.map((one: { details: { reason: string } }) => one.details.reason)).toContain('uses')
  })

  test.each([
    [{ uses: [{ ...OWN, ca: 'x' }] }],
    [{ uses: [{ ...OWN, ca: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n' }] }],
    [{ uses: [{ ...OWN, ca: 'x'.repeat(20_000) }] }],
    [{ uses: [{ ...OWN, protocol: 'postgres' }] }],
    [{ uses: [{ ...OWN, named: true }] }],
    [{ uses: [{ ...OWN, places: [{ in: 'cookie', name: 'x' }] }] }],
    [{ uses: [{ ...OWN, places: [{ in: 'body', name: 'x' }] }] }],
    [{ uses: [{ ...OWN, places: [{ in: 'body', name: 'x', max_bytes: 1e9 }] }] }],
    [{ uses: [{ ...OWN, origin: 'http://own.example.com' }] }],
    [{ uses: Array(17).fill(OWN) }],
    [{ allow: [{ methods: ['GET'], path: '/x', named: true }] }],
    [{ allow: [{ methods: [], path: '/x' }] }],
    [{ allow: [{ methods: ['GET'], path: '/a/../b' }] }],
    [{ deny: 'all' }],
    [{ services: ['S3'] }],
    [{ other: [] }],
    ['x'],
    [[]],
  ])('refuse %j', async (uses) => {
    const reply = await change(uses)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })
})
