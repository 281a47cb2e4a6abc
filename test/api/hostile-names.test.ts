import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createConnection } from '../support/keep-alive.ts'

/**
 * Names, ids, scopes, metadata and headers as nobody should send them, over HTTP. Hostile bytes are in
 * raw-socket.test.ts, hostile JSON in strict-json.test.ts and bodies.test.ts, hostile forms in oauth.test.ts.
 */
let app: TestApp
let agent: NewAgent
let mine = ''
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
  agent = await app.newAgent({ name: 'plain', scopes: ['orders', 'orders:*'] })
  mine = (await agent.client.post('/api/v1/credentials', { backend: 'orders' })).body.id
})
afterAll(() => app.close())

const MARK = 'Zx9Q'
const NAMES: [string, string][] = [
  ['nothing', ''],
  ['a space', ' '],
  ['a space inside', `${MARK} b`],
  ['a leading dot', `.${MARK}`],
  ['a leading dash', `-${MARK}`],
  ['a leading underscore', `_${MARK}`],
  ['a slash', `${MARK}/x`],
  ['a way up', `../${MARK}`],
  ['a colon', `${MARK}:x`],
  ['a wildcard', `${MARK}*`],
  ['a quote', `${MARK}'--`],
  ['markup', `<b>${MARK}</b>`],
  ['an address', `${MARK}@example.org`],
  ['an umlaut', `${MARK}ü`],
  ['a Cyrillic look-alike', `\u0430${MARK}`],
  ['a full-width letter', `\uff21${MARK}`],
  ['a zero-width space', `${MARK}\u200b`],
  ['an override of direction', `${MARK}\u202etxt`],
  ['a line break at the end', `${MARK}\n`],
  ['ESC', `${MARK}\u001b[2J`],
  ['DEL', `${MARK}\u007f`],
  ['129 characters', MARK + 'a'.repeat(125)],
]

/** A refusal repeats nothing that was sent. */
const expectQuiet = (reply: { text: string; headers: Headers }) =>
  expect(`${reply.text}${[...reply.headers].join()}`).not.toContain(MARK)

describe('a name', () => {
  test.each(NAMES)('with %s is refused for an agent, a backend and an enrollment', async (_what, name) => {
    const key = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
    const replies = [
      await app.admin('POST', '/v1/admin/agents', { name }),
      await app.admin('POST', '/v1/admin/backends', { type: 'jwt', name, config: { audience: 'x' } }),
      await app.as(undefined).post('/v1/enroll', { name, public_key: key }),
    ]
    for (const reply of replies.slice(0, 2))
      expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    // One address may send ten a minute.
    expect([400, 429]).toContain(replies[2]?.status)
    for (const reply of replies) expectQuiet(reply)
  })

  test.each(['admin', 'ADMIN', 'OpenID', 'local', 'System', 'mayfly'])('%s is reserved', async (name) => {
    const reply = await app.admin('POST', '/v1/admin/agents', { name })
    expect([reply.status, reply.body.error.code]).toEqual([409, 'conflict'])
  })

  test.each(['PLAIN', 'Plain', 'pLAIN'])('%s is the same as plain', async (name) => {
    expect((await app.admin('POST', '/v1/admin/agents', { name })).status).toBe(409)
  })
})

/** As they appear in the path of the request line. */
const PATHS: [string, string, number][] = [
  ['an unknown id', 'cred_01m7y2wptxey08yga5trkyztk2', 404],
  ['no id', '', 400],
  ['the prefix alone', 'cred_', 404],
  ['another kind of id', 'ag_01m7y2wptxey08yga5trkyztk2', 404],
  ['an id in upper case', 'CRED_01M7Y2WPTXEY08YGA5TRKYZTK2', 404],
  ['letters outside the alphabet', 'cred_uuuuuuuuuuuuuuuuuuuuuuuuuu', 404],
  ['a wildcard', `${MARK}*`, 404],
  ['a percent sign', '%25', 404],
  ['a quote', `%27%20OR%20%271%27=%271${MARK}`, 404],
  ['an encoded slash', `..%2f..%2f${MARK}`, 404],
  ['dots', '..', 404],
  ['encoded dots', '%2e%2e', 404],
  ['a way up and down', `../credentials/${MARK}`, 404],
  ['a second slash', `/${MARK}`, 404],
  ['a slash behind', `${MARK}/`, 404],
  ['a parameter of the path', `${MARK};a=b`, 404],
  ['a space', `${MARK}%20`, 404],
  ['a line break', `${MARK}%0d%0aX-Injected:1`, 404],
  ['ESC', `%1b[2J${MARK}`, 404],
  ['emoji', `%F0%9F%A6%9F${MARK}`, 404],
  ['__proto__', '__proto__', 404],
  ['constructor', 'constructor', 404],
  ['NUL', `${MARK}%00`, 400],
  ['half an escape', `${MARK}%`, 400],
  ['no escape', `${MARK}%zz`, 400],
  ['an overlong encoding', `%c0%af${MARK}`, 400],
  ['a surrogate', `%ed%a0%80${MARK}`, 400],
  ['bytes that are not ASCII', `${MARK}\u00e9`, 400],
  ['300 characters', MARK.repeat(75), 414],
  ['9000 characters', MARK.repeat(2_250), 414],
]

describe('an id in the path', () => {
  test.each(PATHS)('with %s is refused', async (_what, id, status) => {
    const connection = createConnection(Number(new URL(app.url).port))
    for (const [method, base] of [
      ['GET', '/api/v1/credentials/'],
      ['DELETE', '/api/v1/credentials/'],
      ['DELETE', '/v1/active/'],
    ] as const) {
      const head = `${method} ${base}${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${agent.token}\r\n\r\n`
      const reply = await connection.send(Buffer.from(head, 'latin1'), method)
      expect([method, reply.status]).toEqual([method, status])
      expect(reply.body + [...reply.headers].join()).not.toContain(MARK)
    }
    connection.close()
    expect((await agent.client.get(`/api/v1/credentials/${mine}`)).body.status).toBe('active')
  })
})

const SCOPES: [string, unknown][] = [
  ['nothing', ''],
  ['a space', 'orders:a b'],
  ['an empty segment', 'orders::read'],
  ['a colon in front', ':orders'],
  ['a colon behind', 'orders:'],
  ['a star in the middle', 'orders:a*b'],
  ['two stars', 'orders:**'],
  ['a glob', 'orders:{a,b}'],
  ['a regular expression', 'orders:.+?'],
  ['a quote', `orders:'${MARK}`],
  ['a semicolon', `orders:${MARK};drop`],
  ['a dollar', `orders:$$${MARK}`],
  ['a backslash', `orders:\\${MARK}`],
  ['a line break', `orders:${MARK}\nx`],
  ['an umlaut', `orders:${MARK}ü`],
  ['257 characters', `orders:${'a'.repeat(250)}`],
  ['null', null],
  ['a list', [['orders']]],
  ['an object', { [MARK]: 1 }],
]

describe('a scope', () => {
  test.each(SCOPES)('with %s is refused in every request that takes scopes', async (_what, scope) => {
    const scopes = [scope]
    const replies = [
      await agent.client.post('/api/v1/credentials', { backend: 'orders', scopes }),
      await agent.client.post('/v1/credentials/orders', { scopes }),
      await agent.client.post('/v1/request', { scopes }),
      await app.admin('POST', '/v1/admin/agents', { name: 'scoped', scopes }),
      await app.admin('POST', '/v1/admin/backends', {
        type: 'jwt',
        name: 'scoped',
        config: { audience: 'x' },
        allowed_scopes: scopes,
      }),
    ]
    for (const reply of replies) {
      expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
      expectQuiet(reply)
    }
  })

  test.each([
    ['admin', 'admin'],
    ['admin in a list', 'admin:agents:read'],
    ['everything', '*'],
    ['another case', 'Orders2'],
  ])('of %s is not taken for another', async (_what, scope) => {
    const reply = await app.as(agent.token).post('/v1/credentials/orders', { scopes: [scope] })
    // Relative to the backend it has no special meaning and never exceeds the backend's own scopes.
    if (reply.status === 200) expect((await agent.client.get('/v1/admin/agents')).status).toBe(403)
    else expect(reply.body.error.code).toBe('scope_not_allowed')
  })

  test('may come 64 times in a request, not 65 times', async () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => `orders:r${index}`)
    expect((await agent.client.post('/v1/credentials/orders', { scopes: many(65) })).status).toBe(400)
    expect((await agent.client.post('/v1/credentials/orders', { scopes: many(64) })).status).toBe(200)
  })
})

const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) })
const keys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${MARK}${index}`, 1]))

describe('metadata', () => {
  test.each<[string, unknown]>([
    ['text', MARK],
    ['a list', [MARK]],
    ['null', null],
    ['a number', 1],
    ['65 keys', keys(65)],
    ['depth 9', nested(8)],
    ['8193 bytes', { a: 'x'.repeat(8_193 - '{"a":""}'.length) }],
    ['8193 bytes of two each', { a: `${'é'.repeat(4_092)}xx` }],
    ['a constructor', JSON.parse('{"constructor":{"prototype":1}}')],
    ['a prototype', JSON.parse('{"__proto__":{"admin":true}}')],
    ['NUL', { a: `${MARK}\u0000` }],
  ])('that is %s is refused', async (_what, metadata) => {
    const reply = await agent.client.post('/api/v1/credentials', { backend: 'orders', metadata })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    expectQuiet(reply)
  })

  test.each<[string, Record<string, unknown>]>([
    ['64 keys', keys(64)],
    ['depth 8', nested(7) as Record<string, unknown>],
    ['8192 bytes', { a: 'x'.repeat(8_192 - '{"a":""}'.length) }],
    ['controls and directions', { '\u001b[2J': '\u202e\r\n\u2028' }],
    ['what looks like ours', { agent_id: 'ag_0', outcome: 'ok', toString: 'x', hasOwnProperty: 1 }],
  ])('that is %s appears in the audit unchanged', async (_what, metadata) => {
    const reply = await agent.client.post('/api/v1/credentials', { backend: 'orders', metadata })
    expect(reply.status).toBe(201)
    const { entries } = (await agent.client.get(`/api/v1/audit?credential=${reply.body.id}`)).body
    expect(entries).toHaveLength(1)
    expect(entries[0].metadata).toEqual(metadata)
    expect(entries[0].agent_id).toBe(agent.id)
  })
})

describe('a header', () => {
  test.each([
    ['nothing', ''],
    ['a space', 'a b'],
    ['a tab', 'a\tb'],
    ['256 characters', 'k'.repeat(256)],
    ['bytes that are not ASCII', 'k\u00e9'],
    ['a C1 control', 'k\u0085'],
  ])('Idempotency-Key with %s is refused', async (_what, key) => {
    const reply = await app.raw({
      method: 'POST',
      path: '/v1/credentials/orders',
      headers: { authorization: `Bearer ${agent.token}`, 'idempotency-key': key },
    })
    expect([reply.status, JSON.parse(reply.text).error.code]).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['CSI as one byte', 'x\u009b31m', 'x\\x9b31m'],
    ['NEL', 'x\u0085y', 'x\\x85y'],
    ['a tab', 'x\ty', 'x\\x09y'],
    ['markup', '<script>', '<script>'],
    ['Latin-1', 'caf\u00e9', 'caf\u00e9'],
    ['1000 characters', 'u'.repeat(1_000), 'u'.repeat(256)],
    ['256 controls', '\u0085'.repeat(256), '\\x85'.repeat(256)],
  ])('User-Agent with %s is made harmless in the audit', async (_what, sent, recorded) => {
    const headers = { authorization: `Bearer ${agent.token}`, 'user-agent': sent }
    const reply = await app.raw({ method: 'POST', path: '/v1/credentials/orders', headers })
    const { id } = JSON.parse(reply.text)
    const { entries } = (await agent.client.get(`/api/v1/audit?credential=${id}`)).body
    expect(entries[0].user_agent).toBe(recorded)
    expect(app.logged()).not.toMatch(/(?!\n)\p{Cc}/u)
  })
})

describe('a query', () => {
  test.each([
    ['__proto__', '__proto__=1'],
    ['a constructor', 'constructor.prototype=1'],
    ['an unknown field', `${MARK}=1`],
    ['a nameless field', '=1'],
    ['a limit twice', 'limit=1&limit=2'],
    ['a limit that is none', `limit=${MARK}`],
    ['no limit', 'limit='],
    ['a limit of 0', 'limit=0'],
    ['a negative limit', 'limit=-1'],
    ['too high a limit', 'limit=1001'],
    ['an endless limit', 'limit=1e400'],
    ['Infinity', 'limit=Infinity'],
    ['a cursor twice', 'cursor=a&cursor=b'],
    ['NUL', 'cursor=%00'],
    ['a bad escape', `cursor=%zz${MARK}`],
    ['an overlong encoding', 'cursor=%c0%80'],
    ['129 characters', `cursor=${'c'.repeat(129)}`],
  ])('with %s is refused', async (_what, query) => {
    for (const path of ['/v1/active', '/v1/admin/agents', '/api/v1/audit']) {
      const reply = await app.raw({
        path: `${path}?${query}`,
        headers: path.includes('admin')
          ? { host: new URL(app.url).host }
          : { authorization: `Bearer ${agent.token}` },
      })
      expect([path, reply.status, JSON.parse(reply.text).error.code]).toEqual([path, 400, 'invalid_request'])
      expect(reply.text).not.toContain(MARK)
    }
  })
})

test('no case above caused an unexpected error or polluted a prototype', () => {
  expect(app.logged()).not.toContain('unexpected error')
  expect(Reflect.get({}, 'admin')).toBeUndefined()
  expect(app.core.store.trouble()).toBeUndefined()
})
