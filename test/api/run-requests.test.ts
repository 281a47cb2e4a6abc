import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPrune } from '../../src/jobs/prune.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const UNKNOWN = 'run_06dzw5k9q2v6x1m8t3c7n4p0hb'
const LINE = {
  at: '2026-11-21T10:15:00.123Z',
  protocol: 'http',
  method: 'GET',
  authority: 'api.github.com',
  path: '/repos/acme/shop/issues/*',
  status: 200,
  bytes_sent: 0,
  bytes_received: 5120,
  duration_ms: 83,
  decision: 'injected',
  reason: null,
  backend: 'orders',
  credential_id: null,
  placeholder: 'orders.token',
  redacted: 0,
}
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const newBatch = () => Array.from({ length: 26 }, () => DIGITS.charAt(randomInt(32))).join('')

describe.each(DIALECTS)('requests of a run on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  let bob: NewAgent
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    ada = await app.newAgent({ name: 'ada', scopes: ['orders'] })
    bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
  })
  afterAll(() => app.close())

  const start = async (agent = ada): Promise<string> => (await agent.client.post('/v1/runs')).body.id
  const tell = (run: string, requests: readonly object[], batch: string = newBatch(), agent = ada) =>
    agent.client.post(`/v1/runs/${run}/requests`, { batch, requests })
  const listed = async (run: string, query = ''): Promise<Record<string, unknown>[]> => {
    const reply = await ada.client.get(`/v1/runs/${run}/requests${query}`)
    expect(reply.status).toBe(200)
    return reply.body
  }
  const misusedOf = async (run: string) =>
    (await app.local.get(`/v1/admin/audit?run=${run}&action=placeholder.misused&limit=1000`)).body

  test('are shown newest first, to their agent and to administrators, and counted', async () => {
    const run = await start()
    const second = { ...LINE, method: null, path: null, status: null, decision: 'refused', reason: 'path' }
    expect((await tell(run, [LINE, { ...second, redacted: 2 }])).status).toBe(204)
    const last = { ...LINE, protocol: 'postgres', authority: 'db:5432', decision: 'forwarded' }
    expect((await tell(run, [last])).status).toBe(204)
    expect(await listed(run)).toEqual([last, { ...second, redacted: 2 }, LINE])
    const { body } = await app.local.get(`/v1/admin/runs/${run}/requests`)
    expect(body).toEqual(await listed(run))
    const counts = { requests: { total: 3, refused: 1, redacted: 2 } }
    expect((await ada.client.get(`/v1/runs/${run}`)).body).toMatchObject(counts)
    expect((await app.local.get('/v1/admin/runs?limit=1')).body).toMatchObject([counts])
    expect((await ada.client.get(`/v1/runs/${await start()}`)).body).not.toHaveProperty('requests')
  })

  test('of a batch that is sent again are recorded once', async () => {
    const [one, other] = [await start(), await start()]
    const batch = newBatch()
    const misused = { ...LINE, decision: 'misused', reason: 'wrong_authority' }
    for (let times = 0; times < 3; times += 1) expect((await tell(one, [misused], batch)).status).toBe(204)
    const replies = await Promise.all([1, 2, 3].map(() => tell(other, [LINE, misused], batch)))
    expect(replies.map(({ status }) => status)).toEqual([204, 204, 204])
    expect([await listed(one), await listed(other)]).toEqual([[misused], [misused, LINE]])
    expect((await ada.client.get(`/v1/runs/${one}`)).body.requests.total).toBe(1)
    expect(await misusedOf(one)).toHaveLength(1)
  })

  test('come in pages, which have every line once, whatever the filter', async () => {
    const run = await start()
    const decisions = ['injected', 'refused', 'forwarded', 'misused', 'tunnelled']
    let total = 0
    for (const size of [1, 200, 7, 3, 40]) {
      const lines = Array.from({ length: size }, () => {
        total += 1
        return { ...LINE, bytes_sent: total, decision: decisions[total % 5] }
      })
      expect((await tell(run, lines)).status).toBe(204)
    }
    const all = await walk(run, '', 9)
    expect(all.map(({ bytes_sent }) => bytes_sent)).toEqual(
      Array.from({ length: total }, (_, n) => total - n),
    )
    for (const decision of decisions) {
      const wanted = decision === 'refused' ? ['refused', 'misused'] : [decision]
      const some = await walk(run, `&decision=${decision}`, 4)
      expect(some).toEqual(all.filter((one) => wanted.includes(one['decision'] as string)))
    }
    expect(await listed(run, '?limit=1000')).toHaveLength(total)
  })

  const walk = async (run: string, query: string, limit: number) => {
    const found: Record<string, unknown>[] = []
    let path: string | undefined = `/v1/runs/${run}/requests?limit=${limit}${query}`
    while (path !== undefined) {
      const reply = await ada.client.get(path)
      expect(reply.body.length).toBeLessThanOrEqual(limit)
      found.push(...reply.body)
      path = /<([^>]+)>/.exec(reply.headers.get('link') ?? '')?.[1]
    }
    return found
  }

  test('that are few among many are found over pages that may be empty', async () => {
    const run = await start()
    await tell(run, [{ ...LINE, decision: 'tunnelled' }])
    for (let n = 0; n < 25; n += 1) await tell(run, [LINE])
    app.advance(5_000)
    const first = await ada.client.get(`/v1/runs/${run}/requests?decision=tunnelled`)
    expect([first.body, first.headers.get('link')]).toEqual([[], expect.stringContaining('rel="next"')])
    expect(await walk(run, '&decision=tunnelled', 10)).toHaveLength(1)
  })

  test.each(['x', '06dzw5k9q2v6x1m8t3c7n4p0hb', '06dzw5k9q2v6x1m8t3c7n4p0hb.1234', '%00', '..'])(
    'refuse the cursor %j',
    async (cursor) => {
      const reply = await ada.client.get(`/v1/runs/${await start()}/requests?cursor=${cursor}`)
      expect(reply.status).toBe(400)
    },
  )

  test('of a misused placeholder are entries of the audit, twenty of a batch, without what is not their own', async () => {
    const run = await start()
    const mine = (await ada.client.post('/v1/credentials/orders', { run })).body.id
    const foreign = (await bob.client.post('/v1/credentials/orders', {})).body.id
    const misused = { ...LINE, decision: 'misused', reason: 'wrong_authority', authority: 'evil.example' }
    await tell(run, [
      { ...misused, backend: 'Orders', credential_id: mine },
      { ...misused, backend: 'made-up', credential_id: foreign },
      { ...misused, credential_id: "x'}" },
    ])
    const entries = await misusedOf(run)
    expect(entries).toMatchObject([
      { backend: 'orders', credential_id: null },
      { backend: null, credential_id: null },
      { backend: 'orders', credential_id: mine },
    ])
    expect(entries[2]).toMatchObject({
      outcome: 'denied',
      agent_name: 'ada',
      run,
      details: { authority: 'evil.example', placeholder: 'orders.token', method: 'GET' },
    })
    const many = await start()
    await tell(many, Array(50).fill(misused))
    expect(await misusedOf(many)).toHaveLength(20)
    expect((await ada.client.get(`/v1/runs/${many}`)).body.requests.refused).toBe(50)
  })

  test('a flood of misused placeholders is a hundred entries, and one for the rest', async () => {
    const eve = await app.newAgent({ name: 'eve' })
    const run = await start(eve)
    const misused = { ...LINE, decision: 'misused', reason: 'wrong_authority' }
    for (let n = 0; n < 7; n += 1) await tell(run, Array(20).fill(misused), newBatch(), eve)
    await app.core.denials.flush(Number.POSITIVE_INFINITY)
    const entries: { details: { repeated?: number } }[] = await misusedOf(run)
    expect(entries.length).toBeGreaterThanOrEqual(101)
    expect(entries.length).toBeLessThan(110)
    expect(entries.some(({ details }) => (details.repeated ?? 0) > 20)).toBe(true)
  })

  test('of another agent, of an unknown run and with the token of another run are not found', async () => {
    const [one, other] = [await start(), await start()]
    const form = new URLSearchParams({ grant_type: 'client_credentials', run: other, ...ada.oidc })
    const login = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: form })
    const ofOther = app.as(((await login.json()) as { access_token: string }).access_token)
    for (const [client, run] of [
      [bob.client, one],
      [ada.client, UNKNOWN],
      [ofOther, one],
    ] as const) {
      const sent = await client.post(`/v1/runs/${run}/requests`, { batch: newBatch(), requests: [LINE] })
      expect([sent.status, sent.body.error.code]).toEqual([404, 'not_found'])
      expect((await client.get(`/v1/runs/${run}/requests`)).status).toBe(404)
    }
    expect((await app.local.get(`/v1/admin/runs/${UNKNOWN}/requests`)).status).toBe(404)
    const own = await ofOther.post(`/v1/runs/${other}/requests`, { batch: newBatch(), requests: [LINE] })
    expect(own.status).toBe(204)
    expect((await ofOther.get(`/v1/runs/${other}/requests`)).body).toHaveLength(1)
    expect((await bob.client.get(`/v1/admin/runs/${one}/requests`)).status).toBe(403)
  })

  test('of a run that has ended are taken for a minute', async () => {
    const run = await start()
    expect((await ada.client.delete(`/v1/runs/${run}`)).status).toBe(204)
    app.advance(58_000)
    expect((await tell(run, [LINE])).status).toBe(204)
    app.advance(3_000)
    const late = await tell(run, [LINE])
    expect([late.status, late.body.error.code]).toEqual([410, 'gone'])
    expect(await listed(run)).toHaveLength(1)
  })

  test('beyond twenty batches a second of one agent wait, and hinder no other', async () => {
    const eager = await app.newAgent()
    const run = await start(eager)
    const { store } = app.core
    const { now } = store
    const frozen = now()
    store.now = () => frozen
    const replies = await Promise.all(Array.from({ length: 60 }, () => tell(run, [LINE], newBatch(), eager)))
    store.now = now
    const refused = replies.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(20)
    expect(refused[0]?.headers.get('retry-after')).toMatch(/^\d+$/)
    expect((await tell(await start(), [LINE])).status).toBe(204)
  })

  test('beyond a million of a run are counted and not kept', async () => {
    const run = await start()
    await tell(run, [LINE])
    const { store } = app.core
    const [first] = await store.runRequests.weights(run, { last: undefined, isRefused: false }, 1)
    const counts = { total: 999_998, kept: 999_998, refused: 0, redacted: 0 }
    const change = store.runRequests.add({
      runId: run,
      id: newBatch(),
      batch: newBatch(),
      at: 0,
      kept: [],
      counts,
    })
    expect(await store.commit(change)).toEqual({ done: true })
    await tell(run, [LINE, { ...LINE, decision: 'refused', reason: 'path' }])
    await tell(run, [LINE])
    expect((await ada.client.get(`/v1/runs/${run}`)).body.requests).toMatchObject({
      total: 1_000_002,
      refused: 1,
    })
    expect((await listed(run)).map(({ decision }) => decision)).toEqual(['injected', 'injected'])
    expect(first?.count).toBe(1)
  })

  test('go with their run when retention is over', async () => {
    const agent = await app.newAgent()
    const run = await start(agent)
    for (let n = 0; n < 30; n += 1) await tell(run, [LINE], newBatch(), agent)
    await agent.client.delete(`/v1/runs/${run}`)
    app.advance(1_000)
    const prune = createPrune(app.core, 1)
    for (let isMore = true; isMore; ) isMore = await prune(new AbortController().signal)
    const { runRequests } = app.core.store
    expect(await runRequests.someOf([run], 10)).toEqual([])
    expect(await runRequests.counts([run])).toEqual(new Map())
    expect((await app.local.get(`/v1/admin/runs/${run}`)).status).toBe(404)
  })

  const text = (value: string) => [
    { method: value },
    { authority: value },
    { path: value },
    { reason: value },
  ]
  const hostile: [string, object][] = [
    ...['\n', 'a\u0000b', '\u001b[2J', 'a b', 'ä', '\u202e', '\u2028', '', '\ud800']
      .flatMap((value) => [
        ...text(value),
        { placeholder: value },
        { backend: value },
        { credential_id: value },
      ])
      .map((change): [string, object] => [JSON.stringify(change), change]),
    ...text('x'.repeat(513)).map((change): [string, object] => [`long ${Object.keys(change)}`, change]),
    ['a decision that is none', { decision: 'allowed' }],
    ['a protocol that is none', { protocol: 'ftp' }],
    ['a negative count', { bytes_sent: -1 }],
    ['a count beyond the safe integers', { bytes_received: 2 ** 53 }],
    ['a fraction', { duration_ms: 1.5 }],
    ['a number as text', { status: '200' }],
    ['a time that is none', { at: '2026-13-41T10:00:00Z' }],
    ['a time of the year 10000', { at: '+010000-01-01T00:00:00Z' }],
    ['a time before 1970', { at: '1969-12-31T23:59:59Z' }],
    ['a leap second', { at: '2016-12-31T23:59:60Z' }],
    ['an unknown field', { query: 'secret' }],
    ['a field that is missing', { authority: undefined }],
  ]
  test.each(hostile)('refuse %s', async (_, change) => {
    const reply = await ada.client.post(`/v1/runs/${UNKNOWN}/requests`, {
      batch: newBatch(),
      requests: [{ ...LINE, ...change }],
    })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test.each([
    [{ batch: 'x', requests: [LINE] }],
    [{ batch: newBatch().toUpperCase(), requests: [LINE] }],
    [{ batch: `${newBatch()}\n`, requests: [LINE] }],
    [{ batch: newBatch(), requests: [] }],
    [{ batch: newBatch(), requests: Array(201).fill({}) }],
    [{ requests: [LINE] }],
    [{ batch: newBatch(), requests: LINE }],
  ])('refuse the batch %#', async (body) => {
    expect((await ada.client.post(`/v1/runs/${UNKNOWN}/requests`, body)).status).toBe(400)
  })

  test('of more than 64 KiB are refused', async () => {
    const reply = await tell(UNKNOWN, Array(200).fill({ ...LINE, path: `/${'x'.repeat(500)}` }))
    expect(reply.status).toBe(413)
  })
})
