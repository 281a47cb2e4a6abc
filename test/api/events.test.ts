import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { openEvents } from '../support/event-stream.ts'
import { newPerson, SAME_ORIGIN } from '../support/person.ts'

/**
 * A stream ends within a second of what its caller was admitted by; the rest is for a busy machine. One whose caller is looked
 * at only when there is something to say would end after twelve.
 */
const SOON_MS = 8_000

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

let app: TestApp
let reader: NewAgent
beforeAll(async () => {
  app = await startApp()
  reader = await app.newAgent({ scopes: ['admin:audit:read'] })
})
afterAll(() => app.close())

const open = (query = '', headers: Record<string, string> = {}) =>
  openEvents(app, { query, headers: { ...bearer(reader.token), ...headers } })

describe('what a stream has', () => {
  test('each entry as the audit shows it, with a place to go on from', async () => {
    const stream = await open()
    expect(stream.status).toBe(200)
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-accel-buffering': 'no',
    })
    const backend = await app.newBackend()
    const entry = await stream.action('backend.created')
    expect(entry['backend']).toBe(backend)
    const [shown] = (await app.local.get('/v1/admin/audit?action=backend.created&limit=1')).body
    expect(entry).toEqual(shown)
    for (const { id } of stream.events) expect(id).toMatch(/^aud_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    stream.close()
  })

  test('nothing of before, and what matches all filters alone', async () => {
    const [one, two] = [await app.newBackend(), await app.newBackend()]
    const agent = await app.newAgent({ scopes: [one, two] })
    const stream = await open(`?backend=${two}&action=credential.issued&agent=${agent.name}`)
    for (const backend of [one, two, two]) {
      const issued = await agent.client.post('/api/v1/credentials', { backend })
      expect(issued.status).toBe(201)
      await agent.client.delete(`/api/v1/credentials/${issued.body.id}`)
    }
    await eventually(async () => expect(stream.entries()).toHaveLength(2))
    expect(stream.entries().map(({ backend, action }) => [backend, action])).toEqual([
      [two, 'credential.issued'],
      [two, 'credential.issued'],
    ])
    stream.close()
  })

  test('goes on after the last id: everything since, and nothing is missing', async () => {
    const first = await open()
    await app.newBackend()
    await first.action('backend.created')
    const last = first.events.at(-1)?.id ?? ''
    first.close()
    const names = [await app.newBackend(), await app.newBackend()]
    for (const again of [
      await open('', { 'last-event-id': last }),
      await open(`?cursor=${last}`),
      await open(`?cursor=${last.slice(4)}`),
      // The header counts more.
      await open(`?cursor=aud_${'7'.repeat(26)}`, { 'last-event-id': last }),
    ]) {
      await eventually(async () =>
        expect(again.entries().map(({ backend }) => backend)).toEqual(expect.arrayContaining(names)),
      )
      const ids = again.entries().map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      again.close()
    }
  })

  test('its ids are cursors of the audit, with the prefix and without', async () => {
    const stream = await open()
    await app.newBackend()
    const { id } = await stream.action('backend.created')
    stream.close()
    for (const cursor of [id, id.slice(4)]) {
      const page = await app.local.get(`/v1/admin/audit?cursor=${cursor}&limit=1`)
      expect(page.status).toBe(200)
      expect(page.body[0].id < id).toBe(true)
      expect((await app.local.get(`/api/v1/audit?cursor=${cursor}&limit=1`)).body.entries[0]).toEqual(
        page.body[0],
      )
    }
  })

  test('one that is too far behind begins with a reset', async () => {
    const agent = await app.newAgent()
    const { ids, store } = app.core
    const start = await open()
    const last = start.events.at(-1)?.id ?? ''
    start.close()
    const entry = (await store.audit.query({ agentId: agent.id }, 1))[0]
    if (entry === undefined) throw new Error('no entry')
    for (let n = 0; n < 11; n += 1)
      await store.commit(
        Array.from({ length: 100 }, () => store.audit.record({ ...entry, id: ids.body(), at: store.now() })),
      )
    const stream = await open('', { 'last-event-id': last })
    const reset = await stream.next(({ event }) => event === 'reset')
    expect([reset.data, reset.id > last]).toEqual(['{}', true])
    // From there on it goes on.
    await app.newBackend()
    await stream.action('backend.created')
    stream.close()
  })

  test.each([
    ['?cursor=nonsense', {}],
    ['?cursor=', {}],
    [`?cursor=cred_${'0'.repeat(26)}`, {}],
    [`?cursor=aud_${'8'.repeat(26)}`, {}],
    [`?cursor=aud_aud_${'0'.repeat(26)}`, {}],
    ['', { 'last-event-id': `aud_${'0'.repeat(26)}%0a` }],
    ['', { 'last-event-id': 'a'.repeat(70) }],
    ['', { 'last-event-id': "' OR 1=1 --" }],
    ['?action=nothing.known', {}],
    ['?credential=cred_1', {}],
    ['?since=1h', {}],
    ['?limit=5', {}],
    ['?action=credential.issued&action=agent.created', {}],
  ])('refuses %s %j', async (query, headers) => {
    const reply = await open(query, headers as Record<string, string>)
    expect(reply.status).toBe(400)
    expect(JSON.parse(reply.text).error.code).toBe('invalid_request')
  })
})

describe('who may follow what', () => {
  test('without the audit: the facts of the areas that other scopes read', async () => {
    const agent = await app.newAgent({ scopes: ['admin:backends:read', 'admin:enrollments:*'] })
    const stream = await openEvents(app, { headers: bearer(agent.token) })
    const whole = await open()
    await app.newAgent()
    const backend = await app.newBackend()
    const entry = await stream.action('backend.created')
    const full = await whole.action('backend.created')
    expect(Object.keys(entry)).toEqual([
      'id',
      'timestamp',
      'action',
      'outcome',
      'agent_id',
      'agent_name',
      'backend',
      'credential_id',
      'run',
    ])
    expect(entry['backend']).toBe(backend)
    expect(full).toMatchObject(entry)
    await whole.action('agent.created')
    expect(new Set(stream.entries().map(({ action }) => action))).toEqual(new Set(['backend.created']))
    stream.close()
    whole.close()
  })

  test('no filter tells what is not shown, and no scope at all is refused', async () => {
    const some = await app.newAgent({ scopes: ['admin:backends:read'] })
    const none = await app.newAgent({ scopes: ['*', 'admin:audit:write', 'admin:audit:read:x'] })
    for (const [token, query] of [
      [some.token, '?actor=local'],
      [none.token, ''],
    ] as const) {
      const reply = await openEvents(app, { query, headers: bearer(token) })
      expect([reply.status, JSON.parse(reply.text).error.code]).toEqual([403, 'insufficient_scope'])
      expect(reply.headers['www-authenticate']).toContain('scope="admin:audit:read"')
    }
  })

  test('a session needs the key of the page and its origin', async () => {
    const person = await newPerson(app)
    const stream = await openEvents(app, { headers: { ...SAME_ORIGIN, ...person.headers() } })
    expect(stream.status).toBe(200)
    stream.close()
    for (const headers of [
      { ...SAME_ORIGIN, cookie: person.cookie },
      { ...person.headers(), 'sec-fetch-site': 'cross-site' },
      { ...person.headers() },
      { ...SAME_ORIGIN, 'mayfly-console': person.key },
    ])
      expect((await openEvents(app, { headers: headers as Record<string, string> })).status).toBe(401)
  })

  test('eight streams of one caller; the place of one that ends is free', async () => {
    const agent = await app.newAgent({ scopes: ['admin:audit:read'] })
    const streams = await Promise.all(
      Array.from({ length: 8 }, () => openEvents(app, { headers: bearer(agent.token) })),
    )
    const ninth = await openEvents(app, { headers: bearer(agent.token) })
    expect([ninth.status, JSON.parse(ninth.text).error.code]).toEqual([429, 'rate_limited'])
    expect(Number(ninth.headers['retry-after'])).toBeGreaterThan(0)
    const other = await open()
    expect(other.status).toBe(200)
    other.close()
    streams[0]?.close()
    await eventually(async () => {
      const again = await openEvents(app, { headers: bearer(agent.token) })
      again.close()
      expect(again.status).toBe(200)
    })
    for (const stream of streams) stream.close()
  })
})

describe.each(['this node', 'another node'])('an end on %s', (where) => {
  let one: TestApp
  let two: TestApp
  beforeAll(async () => {
    one = await startApp({ dialect: 'postgres' })
    two =
      where === 'this node'
        ? one
        : await startApp({
            databaseUrl: one.databaseUrl ?? '',
            masterKeyFile: join(one.directory, 'master.key'),
          })
  })
  afterAll(async () => {
    if (two !== one) await two.close()
    await one.close()
  })

  const agentEnds: [string, (agent: NewAgent) => Promise<unknown>][] = [
    ['the agent is deleted', (agent) => two.local.delete(`/v1/admin/agents/${agent.name}`)],
    ['its token is replaced', (agent) => two.local.post(`/v1/admin/agents/${agent.name}/rotate`)],
    [
      'it loses the scope',
      (agent) => two.local.patch(`/v1/admin/agents/${agent.name}`, { scopes: ['admin:agents:read'] }),
    ],
  ]
  test.each(agentEnds)('%s', async (_, end) => {
    const agent = await one.newAgent({ scopes: ['admin:audit:read'] })
    const stream = await openEvents(one, { headers: bearer(agent.token) })
    await end(agent)
    const from = performance.now()
    expect((await stream.ended) - from).toBeLessThan(SOON_MS)
    // Nothing came after the end.
    expect(stream.entries().filter(({ agent_id }) => agent_id !== agent.id)).toEqual([])
  })

  test('an access token is revoked; the other stream of its agent goes on', async () => {
    const agent = await one.newAgent({ scopes: ['admin:audit:read'] })
    const token = await one.accessToken(agent)
    const [stream, other] = [
      await openEvents(one, { headers: bearer(token) }),
      await openEvents(one, { headers: bearer(agent.token) }),
    ]
    const form = new URLSearchParams({ token, ...agent.oidc })
    await fetch(`${two.url}/oauth/revoke`, { method: 'POST', body: form })
    const from = performance.now()
    expect((await stream.ended) - from).toBeLessThan(SOON_MS)
    await two.newBackend()
    await other.action('backend.created')
    other.close()
  })

  const sessionEnds: [string, (person: { id: string; email: string }) => Promise<unknown>][] = [
    ['the session is ended', ({ email }) => two.local.delete(`/v1/admin/operators/${email}/sessions`)],
    ['the operator is deleted', ({ email }) => two.local.delete(`/v1/admin/operators/${email}`)],
    [
      'the operator loses the scope',
      ({ id }) => two.local.patch(`/v1/admin/operators/${id}`, { scopes: ['admin:agents:read'] }),
    ],
  ]
  test.each(sessionEnds)('%s', async (_, end) => {
    const person = await newPerson(one)
    const stream = await openEvents(one, { headers: { ...SAME_ORIGIN, ...person.headers() } })
    expect(stream.status).toBe(200)
    await end(person)
    const from = performance.now()
    expect((await stream.ended) - from).toBeLessThan(SOON_MS)
  })

  test('a change of the operator that takes nothing leaves the stream alone', async () => {
    const person = await newPerson(one)
    const stream = await openEvents(one, { headers: { ...SAME_ORIGIN, ...person.headers() } })
    await two.local.patch(`/v1/admin/operators/${person.id}`, { name: 'Another name' })
    await stream.action('operator.changed')
    const backend = await two.newBackend()
    await stream.next(({ data }) => data.includes(`"${backend}"`))
    stream.close()
  })

  test('what one node does, the stream of the other has, and it goes on there', async () => {
    const agent = await one.newAgent({ scopes: ['admin:audit:read'] })
    const stream = await openEvents(one, { headers: bearer(agent.token) })
    const backend = await two.newBackend()
    const event = await stream.next(({ data }) => data.includes(`"${backend}"`))
    stream.close()
    const missed = await one.newBackend()
    const again = await openEvents(two, { headers: { ...bearer(agent.token), 'last-event-id': event.id } })
    await again.next(({ data }) => data.includes(`"${missed}"`))
    again.close()
  })
})

test('a session that ends by time ends its stream, and the stream does not keep it alive', async () => {
  const own = await startApp()
  const person = await newPerson(own)
  const stream = await openEvents(own, { headers: { ...SAME_ORIGIN, ...person.headers() } })
  own.advance(31 * 60_000)
  const from = performance.now()
  expect((await stream.ended) - from).toBeLessThan(SOON_MS)
  await own.close()
})

test('a server that stops ends all streams at once', async () => {
  const own = await startApp()
  const agent = await own.newAgent({ scopes: ['admin:audit:read'] })
  const streams = await Promise.all(
    Array.from({ length: 5 }, () => openEvents(own, { headers: bearer(agent.token) })),
  )
  const from = performance.now()
  await own.close()
  for (const stream of streams) expect((await stream.ended) - from).toBeLessThan(SOON_MS)
  expect(performance.now() - from).toBeLessThan(SOON_MS)
})
