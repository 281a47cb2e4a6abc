import { request } from 'node:http'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { median } from '../../bench/median.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { newPerson, SAME_ORIGIN } from '../support/person.ts'

const EXPORT = '/v1/admin/audit/export'

let app: TestApp
let reader: NewAgent
beforeAll(async () => {
  app = await startApp()
  reader = await app.newAgent({ scopes: ['admin:audit:read'] })
})
afterAll(() => app.close())

const address = async (body: object = {}, client = reader.client): Promise<string> => {
  const reply = await client.post(EXPORT, { format: 'jsonl', ...body })
  expect([reply.status, reply.text]).toEqual([200, reply.text])
  return reply.body.url
}
const linesOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Adds entries as if they had just happened. */
async function addEntries(count: number, facts: object = {}, to = app): Promise<void> {
  const { ids, store } = to.core
  const [like] = await store.audit.query({ action: 'agent.created' }, 1)
  if (like === undefined) throw new Error('no entry')
  const step = 1_000
  for (let n = 0; n < count; n += step)
    await store.commit(
      Array.from({ length: Math.min(step, count - n) }, () =>
        store.audit.record({ ...like, ...facts, id: ids.body(), at: store.now() }),
      ),
      { bulk: true },
    )
}

describe('the file', () => {
  test('all entries that match, newest first, as the audit shows them; and the download is one of them', async () => {
    const agent = await app.newAgent()
    await addEntries(620, { agentId: agent.id, agentName: agent.name })
    const got = await reader.client.get(await address({ agent: agent.name, action: 'agent.created' }))
    expect(got.status).toBe(200)
    expect(got.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
    expect(got.headers.get('content-disposition')).toMatch(
      /^attachment; filename="mayfly-audit-\d{4}-\d\d-\d\d\.jsonl"$/,
    )
    expect(got.headers.get('cache-control')).toBe('no-store')
    const entries = linesOf(got.text)
    expect(entries).toHaveLength(621)
    expect(entries.map(({ id }) => id)).toEqual(
      entries
        .map(({ id }) => id)
        .toSorted()
        .reverse(),
    )
    const page = await app.local.get(`/v1/admin/audit?agent=${agent.id}&action=agent.created&limit=1000`)
    expect(entries).toEqual(page.body)
    const [recorded] = (await app.local.get('/v1/admin/audit?action=audit.exported&limit=1')).body
    expect(recorded).toMatchObject({
      actor: reader.id,
      agent_id: null,
      details: { format: 'jsonl', agent: agent.name, action: 'agent.created' },
    })
  })

  test('CSV: a spreadsheet calculates nothing, whatever an agent has sent', async () => {
    const agent = await app.newAgent()
    const hostile = [
      '=1+1',
      '+1',
      '-1',
      '@SUM(A1)',
      '\t=1',
      '\r=1',
      '\n=1',
      'a,"b"\r\nc',
      '=cmd|"/c calc"!A1',
      'ü',
    ]
    for (const userAgent of hostile) await addEntries(1, { agentId: agent.id, userAgent })
    const got = await reader.client.get(await address({ format: 'csv', agent: agent.id }))
    expect(got.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    const rows = readCsv(got.text)
    const head = rows[0] ?? []
    expect(head.slice(0, 4)).toEqual(['id', 'timestamp', 'action', 'outcome'])
    expect(rows.every((row) => row.length === head.length)).toBe(true)
    const shown = rows.slice(1, 1 + hostile.length).map((row) => row[head.indexOf('user_agent')])
    const safe = hostile.map((text) => (/^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text))
    expect(shown.reverse()).toEqual(safe)
    for (const cell of rows.flat()) expect(cell).not.toMatch(/^[=+\-@\t\r\n]/)
  })

  test('nothing matches: an empty file, or a head line alone', async () => {
    for (const [format, text] of [
      ['jsonl', /^$/],
      ['csv', /^id,[a-z_,]+\r\n$/],
    ] as const)
      for (const filter of [{ agent: 'nobody-of-this-name' }, { until: '2020-01-01' }])
        expect((await reader.client.get(await address({ format, ...filter }))).text).toMatch(text)
  })

  test.each([
    {},
    { format: 'xml' },
    { format: ['csv'] },
    { format: 'csv', since: 'yesterday' },
    { format: 'csv', action: 'nothing.known' },
    { format: 'csv', credential: 'cred_1' },
    { format: 'csv', limit: 5 },
    { format: 'csv', cursor: `aud_${'0'.repeat(26)}` },
    { format: 'csv', url: 'https://elsewhere.example' },
    { format: 'csv', backend: '' },
  ])('refuses %j', async (body) => {
    const reply = await reader.client.post(EXPORT, body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })
})

describe('the address', () => {
  test('is good once, also when two come at the same time', async () => {
    const url = await address({ until: '2020-01-01' })
    const replies = await Promise.all([1, 2].map(() => reader.client.get(url)))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 410])
    expect((await reader.client.get(url)).body.error.code).toBe('gone')
  })

  test('is good for a minute', async () => {
    const own = await startApp()
    const agent = await own.newAgent({ scopes: ['admin:audit:read'] })
    const url = await address({}, agent.client)
    own.advance(61_000)
    expect((await agent.client.get(url)).body.error.code).toBe('gone')
    await own.close()
  })

  test('is worth nothing to anybody else', async () => {
    const person = await newPerson(app)
    const colleague = await newPerson(app)
    const made = await person.call('POST', EXPORT, { format: 'jsonl', until: '2020-01-01' })
    const { url } = made.body
    const host = new URL(app.url).host
    const navigate = (cookie: string, more: Record<string, string> = SAME_ORIGIN) =>
      app.raw({ path: url, headers: { host, cookie, ...more } })
    const other = await app.newAgent({ scopes: ['admin:*'] })
    const statuses = [
      // Alone, from elsewhere, and with what other people have.
      (await app.raw({ path: url, headers: { host, 'x-forwarded-for': '192.0.2.1' } })).status,
      (await navigate('', SAME_ORIGIN)).status,
      (await navigate(colleague.cookie)).status,
      (await reader.client.get(url)).status,
      (await other.client.get(url)).status,
      (await app.local.get(url)).status,
      // The cookie, but the page of another site, an address that was typed, or no browser.
      (await navigate(person.cookie, { 'sec-fetch-site': 'cross-site' })).status,
      (await navigate(person.cookie, { 'sec-fetch-site': 'same-site' })).status,
      (await navigate(person.cookie, { 'sec-fetch-site': 'none' })).status,
      (await navigate(person.cookie, {})).status,
      (await navigate(`${person.cookie}; ${person.cookie}`)).status,
    ]
    for (const status of statuses) expect([401, 404]).toContain(status)
    // None of them has used it up.
    expect((await navigate(person.cookie)).status).toBe(200)
    expect((await navigate(person.cookie)).status).toBe(410)
  })

  test('the cookie alone opens nothing else', async () => {
    const person = await newPerson(app)
    const host = new URL(app.url).host
    for (const path of ['/v1/admin/audit', '/v1/admin/me', '/v1/admin/events', '/v1/admin/agents']) {
      const reply = await app.raw({ path, headers: { host, cookie: person.cookie, ...SAME_ORIGIN } })
      expect([path, reply.status]).toEqual([path, 401])
    }
    const post = { method: 'POST', path: EXPORT, body: '{"format":"csv"}' }
    const headers = { host, cookie: person.cookie, 'content-type': 'application/json', ...SAME_ORIGIN }
    expect((await app.raw({ ...post, headers })).status).toBe(401)
  })

  test('a session that has ended, or lost the scope, downloads nothing', async () => {
    for (const [status, end] of [
      [401, (id: string) => app.local.delete(`/v1/admin/operators/${id}/sessions`)],
      [403, (id: string) => app.local.patch(`/v1/admin/operators/${id}`, { scopes: ['admin:agents:read'] })],
    ] as const) {
      const person = await newPerson(app)
      const { url } = (await person.call('POST', EXPORT, { format: 'csv' })).body
      await end(person.id)
      expect((await person.call('GET', url)).status).toBe(status)
    }
  })

  test.each(['', 'x', '1.', '1.c2VhbGVk', '2147483648.AAAA', 'a'.repeat(6_000)])(
    'a ticket that nobody has made: %s',
    async (ticket) => {
      const reply = await reader.client.get(`${EXPORT}?ticket=${ticket}`)
      expect([400, 404]).toContain(reply.status)
    },
  )

  test('a ticket that was changed, or sealed for something else', async () => {
    const url = await address()
    const ticket = new URLSearchParams(url.split('?')[1]).get('ticket') ?? ''
    const sealed = app.core.sealer.seal('backends', '', 'ticket', '{}')
    for (const changed of [`${ticket}A`, ticket.slice(0, -2), ticket.toLowerCase(), sealed]) {
      const reply = await reader.client.get(`${EXPORT}?${new URLSearchParams({ ticket: changed })}`)
      expect([changed, reply.status]).toEqual([changed, 404])
    }
  })

  test('HEAD does not use it up', async () => {
    const url = await address({ until: '2020-01-01' })
    const head = await app.raw({
      method: 'HEAD',
      path: url,
      headers: { host: new URL(app.url).host, authorization: `Bearer ${reader.token}` },
    })
    expect(head.status).toBeGreaterThanOrEqual(400)
    expect((await reader.client.get(url)).status).toBe(200)
  })
})

test('an address of one node is good on the other, once', async () => {
  const one = await startApp({ dialect: 'postgres' })
  const two = await startApp({
    databaseUrl: one.databaseUrl ?? '',
    masterKeyFile: join(one.directory, 'master.key'),
  })
  const agent = await one.newAgent({ scopes: ['admin:audit:read'] })
  const url = await address({}, agent.client)
  const at = (node: TestApp) => node.as(agent.token).get(url)
  const replies = await Promise.all([at(one), at(two), at(two)])
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 410, 410])
  await two.close()
  await one.close()
})

/**
 * Bytes that are in use after a collection, of server and client. V8 frees the memory of buffers on
 * another thread, so that a single figure can be 20 MB too high: take the median of many.
 */
function inUse(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** A download whose body is read only when the test says so. */
async function slowly(to: TestApp, url: string, token: string) {
  const { hostname, port } = new URL(to.url)
  const outgoing = request({
    hostname,
    port,
    path: url,
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  })
  outgoing.end()
  const reply = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve).once('error', reject)
  })
  reply.pause()
  return { reply, close: () => outgoing.destroy() }
}

describe('a download that takes long', () => {
  let own: TestApp
  let agent: NewAgent
  beforeAll(async () => {
    own = await startApp()
    agent = await own.newAgent({ scopes: ['admin:audit:read'] })
    await addEntries(40_000, { metadata: { text: 'x'.repeat(1_500) } }, own)
  })
  afterAll(() => own.close())

  test('one that is not read makes the server read little, and ends with its caller', async () => {
    const { store } = own.core
    let pages = 0
    const { query } = store.audit
    store.audit.query = (...args) => {
      pages += 1
      return query(...args)
    }
    const other = await own.newAgent({ scopes: ['admin:audit:read'] })
    const { reply, close } = await slowly(own, await address({}, other.client), other.token)
    await eventually(async () => expect(pages).toBeGreaterThan(2))
    await new Promise((resolve) => setTimeout(resolve, 500))
    // 60 MB are there: what is in buffers of the two sockets is a few of them.
    expect(pages).toBeLessThan(80)
    await own.local.delete(`/v1/admin/agents/${other.name}`)
    let size = 0
    const isCut = new Promise<boolean>((resolve) => {
      reply.once('error', () => resolve(true)).once('end', () => resolve(false))
    })
    reply.on('data', (chunk: Buffer) => {
      size += chunk.length
    })
    reply.resume()
    expect(await isCut).toBe(true)
    expect(size).toBeLessThan(60_000_000)
    close()
    store.audit.query = query
  })

  test('the memory of the server does not grow with the size of the file', async () => {
    const download = async (until: number) => {
      const { reply, close } = await slowly(own, await address({}, agent.client), agent.token)
      let bytes = 0
      let chunks = 0
      const samples: number[] = []
      for await (const chunk of reply) {
        bytes += (chunk as Buffer).length
        chunks += 1
        if (chunks % 25 === 0) samples.push(inUse())
        if (bytes > until) break
      }
      close()
      return { bytes, memory: median(samples.slice(Math.floor(samples.length / 2))) }
    }
    const few = await download(6_000_000)
    const all = await download(Number.POSITIVE_INFINITY)
    expect(all.bytes).toBeGreaterThan(60_000_000)
    // Ten times as much: what grew with it would hold 45 MB in the middle of the second half.
    expect(all.memory - few.memory).toBeLessThan(16_000_000)
  })

  test('two at once of one caller', async () => {
    const open = [1, 2].map(async () => slowly(own, await address({}, agent.client), agent.token))
    const both = await Promise.all(open)
    expect(both.map(({ reply }) => reply.statusCode)).toEqual([200, 200])
    const third = await address({}, agent.client)
    expect((await agent.client.get(third)).body.error.code).toBe('rate_limited')
    for (const { close } of both) close()
    // The refusal has not used it up.
    await eventually(async () => {
      const { reply, close } = await slowly(own, third, agent.token)
      close()
      expect(reply.statusCode).toBe(200)
    })
  })
})

/** RFC 4180. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    rows.at(-1)?.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'))
    if (end === '\r\n') rows.push([])
    if (end === '') break
  }
  return rows.slice(0, -1)
}
