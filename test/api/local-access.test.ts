import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

/** The entries that `act` leaves, oldest first, read past the interface. */
async function entriesOf(act: () => Promise<unknown>) {
  const { audit } = app.core.store
  const before = new Set((await audit.query({}, 1_000)).map(({ id }) => id))
  await act()
  return (await audit.query({}, 1_000)).filter(({ id }) => !before.has(id)).reverse()
}

async function pendingId(name: string): Promise<string> {
  const enrollee = newEnrollee('Ed25519', 'https://mayfly.test')
  return (await app.local.post('/v1/enroll', { name, public_key: enrollee.publicKey })).body.id
}

describe('a change by the local host', () => {
  const ids: Record<string, string> = {}
  beforeAll(async () => {
    ids['approve'] = await pendingId('approved')
    ids['reject'] = await pendingId('rejected')
    await app.newBackend({ name: 'held' })
    const agent = await app.newAgent({ scopes: ['held'] })
    for (const key of ['token', 'credential'])
      ids[key] = (await agent.client.post('/v1/credentials/held')).body.id
  })

  test.each([
    ['agent.created', 'POST', '/v1/admin/agents', { name: 'made' }],
    ['agent.deleted', 'DELETE', '/v1/admin/agents/made', undefined],
    ['backend.created', 'POST', '/v1/admin/backends', { type: 'jwt', name: 'b', config: { audience: 'x' } }],
    ['backend.changed', 'PUT', '/v1/admin/backends/b', { description: 'new' }],
    ['backend.deleted', 'DELETE', '/v1/admin/backends/b', undefined],
    ['credential.revoked', 'DELETE', '/v1/admin/tokens/{token}', undefined],
    ['credential.revoked', 'DELETE', '/api/v1/credentials/{credential}', undefined],
    ['enrollment.approved', 'POST', '/v1/admin/pending/{approve}/approve', {}],
    ['enrollment.rejected', 'POST', '/v1/admin/pending/{reject}/reject', {}],
    ['plugin.reloaded', 'POST', '/v1/admin/plugins/reload', undefined],
    ['plugin.reloaded', 'POST', '/v1/admin/plugins/jwt/reload', undefined],
    ['keys.rotated', 'POST', '/v1/admin/keys/rotate', {}],
  ])('%s leaves one entry, its own', async (action, method, path, body) => {
    const filled = path.replace(/\{(\w+)\}/, (_, name: string) => ids[name] ?? '')
    const entries = await entriesOf(async () => {
      expect((await app.admin(method, filled, body)).status).toBeLessThan(300)
    })
    // An approval also creates the agent.
    const own = entries.filter(
      (entry) => action !== 'enrollment.approved' || entry.action !== 'agent.created',
    )
    expect(own).toMatchObject([{ action, actor: 'local', authMethod: 'unix_socket', outcome: 'ok' }])
  })

  test('that is refused leaves one entry with its route, and a flood of them one more', async () => {
    const route = 'DELETE /v1/admin/agents/:name'
    const refused = { action: 'admin.local_access', outcome: 'denied', actor: 'local' }
    const entries = await entriesOf(async () => {
      for (let n = 0; n < 20; n += 1)
        expect((await app.admin('DELETE', `/v1/admin/agents/none-${n}`)).status).toBe(404)
      await app.core.denials.flush(Number.POSITIVE_INFINITY)
    })
    expect(entries).toMatchObject([
      { ...refused, details: { route, code: 404 } },
      { ...refused, details: { route, code: 404, repeated: 19 } },
    ])
  })
})

describe('a read by the local host', () => {
  const read = { action: 'admin.local_access', outcome: 'ok', actor: 'local', authMethod: 'unix_socket' }

  test('leaves an entry before it is answered, and the repetitions of a minute leave one', async () => {
    const route = { route: 'GET /v1/admin/agents', scope: 'admin:agents:read' }
    const first = await entriesOf(() =>
      Promise.all(Array.from({ length: 10 }, () => app.local.get('/v1/admin/agents'))),
    )
    expect(first).toMatchObject([{ ...read, details: route }])
    const later = await entriesOf(async () => {
      for (let n = 0; n < 5; n += 1) await app.local.get('/v1/admin/agents?limit=1')
      await app.core.localReads.flush(app.core.store.now())
    })
    expect(later).toEqual([])
    app.advance(61_000)
    const summary = await entriesOf(() => app.core.localReads.flush(app.core.store.now()))
    expect(summary).toMatchObject([{ ...read, details: { ...route, repeated: 14 } }])
    expect(await entriesOf(() => app.core.localReads.flush(Number.POSITIVE_INFINITY))).toEqual([])
  })

  test('of what every agent may read leaves none', async () => {
    expect(await entriesOf(() => app.local.get('/api/v1/backends'))).toEqual([])
    expect(await entriesOf(() => app.local.get('/api/v1/backends/held'))).toEqual([])
  })

  test('that is summarised is written when the server stops', async () => {
    const other = await startApp()
    const entries: (typeof read)[] = []
    const { record } = other.core.store.audit
    Object.assign(other.core.store.audit, {
      record: (entry: typeof read & { details: unknown }) => {
        entries.push(entry)
        return record(entry as never)
      },
    })
    await other.local.get('/v1/admin/tokens')
    await other.local.get('/v1/admin/tokens')
    await other.close()
    const route = { route: 'GET /v1/admin/tokens', scope: 'admin:tokens:read' }
    expect(entries).toMatchObject([{ details: route }, { details: { ...route, repeated: 1 } }])
  })
})
