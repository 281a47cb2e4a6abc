import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/app/version.ts'
import { countActivity } from '../../src/core/audit/count-activity.ts'
import { lowestBodyAt } from '../../src/domain/ids.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS, newBody, newEntry, someCredential } from '../support/store.ts'

interface Series {
  backend: string | null
  action: string
  points: { at: string; count: number }[]
}
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const QUARTER_MS = 15 * MINUTE_MS
const T = Date.parse('2026-03-01T10:00:00Z')

async function countAll({ core }: TestApp): Promise<void> {
  while (await countActivity(core));
}
/** The horizon of PostgreSQL is half a minute behind; here every commit is done. */
function moveHorizon({ core }: TestApp): void {
  Object.assign(core.store.audit, { horizon: async () => lowestBodyAt(core.store.now() + 1) })
}
const read = async (app: TestApp, query: Record<string, string>) => {
  const { status, body } = await app.admin('GET', `/v1/admin/activity?${new URLSearchParams(query)}`)
  expect([status, body]).toEqual([200, expect.anything()])
  return body as {
    since: string
    until: string
    step_seconds: number
    counted_until: string
    series: Series[]
  }
}

describe.each(DIALECTS)('GET /v1/admin/activity on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect })
    moveHorizon(app)
    await app.newBackend({ name: 'orders' })
    const { store } = app.core
    const entry = (minutes: number, action: 'credential.issued' | 'token.issued', backend: string | null) =>
      store.audit.append(
        newEntry({ id: newBody(T + minutes * MINUTE_MS), at: T + minutes * MINUTE_MS, action, backend }),
      )
    await store.commit([
      entry(0, 'credential.issued', 'orders'),
      entry(1, 'credential.issued', 'orders'),
      entry(1, 'credential.issued', 'stock'),
      entry(1, 'token.issued', null),
      entry(59, 'credential.issued', 'orders'),
      entry(60, 'credential.issued', 'orders'),
    ])
    await countAll(app)
  })
  afterAll(() => app.close())

  const hour = { since: '2026-03-01T10:00:00Z', until: '2026-03-01T11:00:00Z' }
  const at = (minutes: number) => new Date(T + minutes * MINUTE_MS).toISOString()

  test('has a series for each backend and action, with a point where entries are', async () => {
    const reply = await read(app, hour)
    expect(reply).toEqual({
      since: '2026-03-01T10:00:00.000Z',
      until: '2026-03-01T11:00:00.000Z',
      step_seconds: 60,
      counted_until: expect.stringMatching(RFC3339),
      series: [
        {
          backend: 'orders',
          action: 'credential.issued',
          points: [
            { at: at(0), count: 1 },
            { at: at(1), count: 1 },
            { at: at(59), count: 1 },
          ],
        },
        { backend: 'stock', action: 'credential.issued', points: [{ at: at(1), count: 1 }] },
        { backend: null, action: 'token.issued', points: [{ at: at(1), count: 1 }] },
      ],
    })
    expect(Math.abs(Date.parse(reply.counted_until) - Date.now())).toBeLessThan(MINUTE_MS)
  })

  test.each([
    ['1m', [1, 1, 1]],
    ['7m', [1, 1, 2]],
    ['15m', [2, 1]],
    ['45m', [2, 2]],
    ['1h', [3]],
    ['2h', [4]],
    ['1d', [4]],
  ])('a step of %s has the sums, and both ends are multiples of it', async (step, counts) => {
    const reply = await read(app, { ...hour, step, backend: 'ORDERS', action: 'credential.issued' })
    expect(reply.series.map(({ points }) => points.map(({ count }) => count))).toEqual([counts])
    const [since, until] = [Date.parse(reply.since), Date.parse(reply.until)]
    expect([since % (reply.step_seconds * 1_000), until % (reply.step_seconds * 1_000)]).toEqual([0, 0])
    expect([since <= T, until >= T + HOUR_MS]).toEqual([true, true])
  })

  test('by action, all backends are one series', async () => {
    const { series } = await read(app, { ...hour, step: '1h', by: 'action' })
    expect(series).toEqual([
      { backend: null, action: 'credential.issued', points: [{ at: at(0), count: 4 }] },
      { backend: null, action: 'token.issued', points: [{ at: at(0), count: 1 }] },
    ])
  })

  test('by itself it shows the last day', async () => {
    const reply = await read(app, {})
    expect(reply.step_seconds).toBe(900)
    const length = Date.parse(reply.until) - Date.parse(reply.since)
    expect([24 * HOUR_MS, 24 * HOUR_MS + 15 * MINUTE_MS]).toContain(length)
  })

  test('says until when all is counted, also while older entries are not', async () => {
    const position = (await app.core.store.activity.position()) ?? ''
    const { store } = app.core
    await store.commit([store.meta.replace('activity', position, lowestBodyAt(T + 30 * MINUTE_MS))])
    expect((await read(app, hour)).counted_until).toBe(at(30))
    await store.commit([store.meta.replace('activity', lowestBodyAt(T + 30 * MINUTE_MS), position)])
  })

  test.each([
    ['step', { step: '90s' }],
    ['step', { step: '0m' }],
    ['step', { step: 'PT1M' }],
    ['step', { step: '-1m' }],
    ['step', { since: '2w', step: '1m' }],
    ['since', { since: '2026-02-30' }],
    ['since', { since: '1h', until: '2h' }],
    ['since', { since: '2026-03-01T10:00:00Z', until: '2026-03-01T10:00:00Z' }],
    ['since', { since: '1969-12-31' }],
    ['since', { since: '5000w' }],
    ['until', { until: 'yesterday' }],
    ['action', { action: 'credential.lost' }],
    ['by', { by: 'agent' }],
  ])('refuses what is wrong with %s: %j', async (field, query) => {
    const { status, body } = await app.admin('GET', `/v1/admin/activity?${new URLSearchParams(query)}`)
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
    expect(body.error.message).toContain(`"${field}"`)
  })

  test.each([{ agent: 'ada' }, { limit: '5' }, { cursor: 'x' }])('has no filter %j', async (query) => {
    const { status } = await app.admin('GET', `/v1/admin/activity?${new URLSearchParams(query)}`)
    expect(status).toBe(400)
  })

  test('needs the scope of the audit', async () => {
    const reader = await app.newAgent({ scopes: ['admin:audit:read'] })
    const other = await app.newAgent({ scopes: ['admin:metrics:read'] })
    expect((await reader.client.get('/v1/admin/activity')).status).toBe(200)
    expect((await other.client.get('/v1/admin/activity')).body.error.code).toBe('insufficient_scope')
  })

  test('a reply that would be too large is refused', async () => {
    const { store } = app.core
    const sql = `INSERT INTO activity (span, at, backend, action, count)
      WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50999)
      SELECT ${MINUTE_MS}, ${T - HOUR_MS} - (n % 1000) * ${MINUTE_MS}, 'b' || (n / 1000), 'credential.issued', 1 FROM numbers`
    await store.commit([{ op: 'run', sql, params: [], rows: 51_000 }])
    const query = { since: '2026-02-28T16:30:00Z', until: '2026-03-01T09:05:00Z', step: '1m' }
    const reply = await app.admin('GET', `/v1/admin/activity?${new URLSearchParams(query)}`)
    expect([reply.status, reply.body.error?.message]).toEqual([400, expect.stringContaining('by=action')])
    expect((await read(app, { ...query, by: 'action' })).series[0]?.points.length).toBeGreaterThan(900)
  })
})

describe.each(DIALECTS)('GET /v1/admin/overview on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  let bob: NewAgent
  async function start() {
    const started = await startApp({ dialect })
    moveHorizon(started)
    await started.newBackend({ name: 'orders' })
    await started.newBackend({ name: 'stock' })
    ada = await started.newAgent({ name: 'ada', scopes: ['orders', 'stock'] })
    bob = await started.newAgent({ name: 'bob', scopes: ['orders'] })
    return started
  }
  beforeAll(async () => {
    app = await start()
  })
  afterAll(() => app.close())

  const overview = async () => (await app.admin('GET', '/v1/admin/overview')).body
  /** Counted after now. */
  async function fresh() {
    const { at } = await overview()
    let body = await overview()
    await eventually(async () => {
      body = await overview()
      expect(body.at > at).toBe(true)
    })
    return body
  }
  const issue = async (agent: NewAgent, backend: string): Promise<string> =>
    (await agent.client.post(`/v1/credentials/${backend}`, { ttl: '30m' })).body.id

  test('many who ask at the same moment cost one count', async () => {
    let counts = 0
    const { due } = app.core.store.counts
    Object.assign(app.core.store.counts, {
      due: (now: number) => {
        counts += 1
        return due(now)
      },
    })
    const all = await Promise.all(Array.from({ length: 20 }, overview))
    expect(counts).toBe(1)
    expect(new Set(all.map(({ at }) => at)).size).toBe(1)
  })

  test('shows what is alive, what waits, and the store', async () => {
    const ids = [await issue(ada, 'orders'), await issue(ada, 'stock'), await issue(ada, 'stock')]
    await issue(bob, 'orders')
    await ada.client.delete(`/v1/active/${ids[0]}`)
    const asked = (await bob.client.post('/v1/request', { scopes: ['stock'], reason: 'x' })).body
    // The reads of an agent leave no entry.
    const reader = await app.newAgent({ scopes: ['admin:audit:read', 'admin:metrics:read'] })
    await fresh()
    const { body } = await reader.client.get('/v1/admin/overview')
    expect(body).toEqual({
      at: expect.stringMatching(RFC3339),
      live: {
        total: 3,
        by_backend: [
          { backend: 'stock', count: 2 },
          { backend: 'orders', count: 1 },
        ],
        by_agent: [
          { agent_id: ada.id, agent_name: 'ada', count: 2 },
          { agent_id: bob.id, agent_name: 'bob', count: 1 },
        ],
        history: expect.any(Array),
      },
      waiting: { count: 1, oldest: expect.stringMatching(RFC3339) },
      unended: [],
      sweep_lag_seconds: 0,
      store: { engine: dialect, size_bytes: expect.any(Number) },
      audit_entries_24h: expect.any(Number),
      version: VERSION,
    })
    expect(Math.abs(Date.parse(body.waiting.oldest) - Date.parse(asked.created_at ?? body.at))).toBeLessThan(
      30_000,
    )
    // All entries, whether they are counted or not.
    const { entries } = (await reader.client.get('/api/v1/audit?limit=1000')).body
    expect(body.audit_entries_24h).toBe(entries.length)
  })

  test('shows what has ended and its upstream may accept, and for how long the oldest is due', async () => {
    const { store } = app.core
    const now = store.now()
    const row = someCredential({
      agentId: ada.id,
      backendUid: (await store.backends.findByName('stock'))?.uid ?? '',
      backend: 'stock',
      state: 'revoking',
      createdAt: now - 90_000,
      endedAt: now - 60_000,
      dueAt: now - 30_000,
    })
    await store.commit([store.credentials.insert(row)])
    const body = await fresh()
    expect(body.unended).toEqual([
      { backend: 'stock', count: 1, since: new Date(now - 60_000).toISOString() },
    ])
    expect(body.sweep_lag_seconds).toBeGreaterThanOrEqual(30)
    expect(body.live.total).toBe(3)
  })

  test('needs the scope of the metrics', async () => {
    const reader = await app.newAgent({ scopes: ['admin:metrics:read'] })
    expect((await reader.client.get('/v1/admin/overview')).status).toBe(200)
    expect((await ada.client.get('/v1/admin/overview')).body.error.code).toBe('insufficient_scope')
  })

  test('the history has what was alive at each quarter of an hour, whether it is counted or not', async () => {
    await app.close()
    app = await start()
    const { store } = app.core
    // Far from the end of a quarter of an hour, wherever the clock is.
    app.advance(QUARTER_MS - (store.now() % QUARTER_MS) + MINUTE_MS)
    const first = await issue(ada, 'orders')
    await issue(ada, 'orders')
    await issue(bob, 'orders')
    const issued = store.now()
    app.advance(20 * MINUTE_MS)
    await ada.client.delete(`/v1/active/${first}`)
    const revoked = store.now()
    await countAll(app)
    app.advance(12 * MINUTE_MS)
    await app.sweep()
    const expired = store.now()
    const aliveAt = (at: number) => (at < issued || at >= expired ? 0 : at < revoked ? 3 : 2)
    const expected = Array.from({ length: 96 }, (_, n) => {
      const at = Math.floor(expired / QUARTER_MS) * QUARTER_MS - (95 - n) * QUARTER_MS
      return { at: new Date(at).toISOString(), count: aliveAt(at) }
    })
    const { live } = await overview()
    expect(live).toMatchObject({ total: 0, history: expected })
    expect(expected.some(({ count }) => count === 3)).toBe(true)
    await countAll(app)
    const counted = await store.activity.position()
    expect(counted && counted > lowestBodyAt(expired - 1_000)).toBe(true)
    const { at } = await overview()
    await eventually(async () => {
      const later = await overview()
      expect(later.at > at).toBe(true)
      expect(later.live.history).toEqual(expected)
    })
    // While much older entries are not counted, there is none.
    await store.commit([store.meta.replace('activity', counted ?? '', lowestBodyAt(issued - 5_000))])
    await eventually(async () => expect((await overview()).live.history).toEqual([]))
  })
})
