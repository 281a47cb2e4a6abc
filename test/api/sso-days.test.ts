import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Reply, startApp, type TestApp } from '../support/app.ts'
import { makeCertificates } from '../support/certificates.ts'
import { callAsPage, newPerson } from '../support/person.ts'
import { attempt, begin, finish, logIn, NAME, startSsoApp } from '../support/sso-person.ts'
import { type SsoServer, startSsoServer } from '../support/sso-server.ts'

let directory: string
let provider: SsoServer
let app: TestApp
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-sso-'))
  provider = await startSsoServer()
  provider.people.set('alice', { groups: ['admins'] })
})
afterAll(async () => {
  await provider?.close()
  await rm(directory, { recursive: true, force: true })
})
beforeEach(async () => {
  app = await startSsoApp([await provider.entry(directory)])
})
afterEach(async () => {
  provider.before = () => undefined
  provider.documents.clear()
  provider.forge = undefined
  await app.close()
})

const tryToBegin = () => callAsPage(app, 'POST', '/v1/console/login/sso', { provider: NAME })
const codeOf = ({ status, body }: Reply) => [status, body.error.code]
const away = async () => {
  throw new Error('the provider is away')
}

describe('a provider that is away', () => {
  test('stops no start and no other login, and is asked again after a pause', async () => {
    provider.before = away
    const refused = await tryToBegin()
    expect(codeOf(refused)).toEqual([503, 'backend_unavailable'])
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(refused.body.error.message).toContain('Log in by passkey or link, or over admin.sock')
    expect((await (await newPerson(app)).call('GET', '/v1/admin/me')).status).toBe(200)
    const asked = provider.seen.length
    await tryToBegin()
    expect(provider.seen).toHaveLength(asked)
    provider.before = () => undefined
    app.advance(5_001)
    expect((await tryToBegin()).status).toBe(200)
  })

  test('between the beginning and the end: the code is not sent, and the login is begun again', async () => {
    provider.user = 'alice'
    const { url, cookie } = await begin(app)
    const answer = await provider.logIn(url)
    provider.before = away
    expect(codeOf(await finish(app, answer, cookie))).toEqual([503, 'backend_unavailable'])
    provider.before = () => undefined
    await logIn(app, provider, 'alice')
  })

  test('after an hour: what it said before counts', async () => {
    await begin(app)
    app.advance(3_600_001)
    provider.before = away
    expect((await tryToBegin()).status).toBe(200)
  })

  test('is asked once by many who begin', async () => {
    const before = provider.seen.length
    await Promise.all(Array.from({ length: 10 }, tryToBegin))
    expect(provider.seen).toHaveLength(before + 1)
  })
})

test('keys that rotate are read with the next login, at once', async () => {
  await logIn(app, provider, 'alice')
  provider.rotateKeys()
  await logIn(app, provider, 'alice')
  provider.rotateKeys()
  await logIn(app, provider, 'alice')
})

test.each([
  ['behind', 600_000],
  ['ahead', -600_000],
])('a clock of the provider that is %s is named', async (_, ms) => {
  app.advance(ms)
  const refused = await attempt(app, provider, 'alice')
  expect(codeOf(refused)).toEqual([401, 'unauthorized'])
  expect(refused.body.error.message).toContain('The clock of the provider')
})

test.each<[string, string, (body: Record<string, unknown>) => unknown]>([
  ['another issuer', 'begin', (body) => ({ ...body, issuer: 'https://evil.test' })],
  ['its issuer with a slash', 'begin', (body) => ({ ...body, issuer: `${body['issuer']}/` })],
  ['no keys', 'begin', (body) => ({ ...body, jwks_uri: undefined })],
  ['no token endpoint', 'begin', (body) => ({ ...body, token_endpoint: undefined })],
  ['nothing', 'begin', () => ({})],
  ['more than 256 KiB', 'begin', (body) => ({ ...body, more: 'x'.repeat(300_000) })],
  [
    'only alg none and HS256',
    'finish',
    (body) => ({ ...body, id_token_signing_alg_values_supported: ['none', 'HS256'] }),
  ],
])('a provider that says %s of itself is refused', async (_, where, change) => {
  provider.documents.set('/.well-known/openid-configuration', change)
  if (where === 'begin') {
    expect((await tryToBegin()).status).toBeGreaterThanOrEqual(502)
    return
  }
  for (const alg of ['none', 'HS256', 'RS256']) {
    provider.forge = (token) => token.signed({}, { alg })
    expect(codeOf(await attempt(app, provider, 'alice'))).toEqual([401, 'unauthorized'])
  }
})

test('the secret of the client is wrong: the log says so, and the person whom to ask', async () => {
  const entry = await provider.entry(directory)
  const file = join(directory, 'wrong.secret')
  await writeFile(file, 'wrong\n')
  const other = await startSsoApp([{ ...entry, client_secret_file: file }])
  try {
    const refused = await attempt(other, provider, 'alice')
    expect(codeOf(refused)).toEqual([502, 'backend_error'])
    expect(other.logged()).toContain('the provider answered with status 401')
  } finally {
    await other.close()
  }
})

test('a loopback address needs "local", whatever its name resolves to', async () => {
  const entry = await provider.entry(directory)
  const issuer = 'https://login.example.com'
  const resolver = { lookup: async () => [], addresses: async () => ['127.0.0.1'] } as never
  const other = await startSsoApp([{ ...entry, issuer, local: false }], { resolver })
  try {
    const reply = await callAsPage(other, 'POST', '/v1/console/login/sso', { provider: NAME })
    expect(codeOf(reply)).toEqual([502, 'backend_error'])
    expect(other.logged()).toContain('refused address 127.0.0.1')
  } finally {
    await other.close()
  }
})

test('a provider with a certificate of an authority of our own needs ca_file', async () => {
  const { server, ca } = makeCertificates(directory)
  const secure = await startSsoServer({ tls: server })
  const entry = await secure.entry(directory)
  const other = await startSsoApp([
    { ...entry, ca_file: ca },
    {
      ...(await provider.entry(directory)),
      issuer: secure.issuer.replace('localhost', '127.0.0.1'),
      name: 'Without',
    },
  ])
  try {
    await begin(other)
    const refused = await callAsPage(other, 'POST', '/v1/console/login/sso', { provider: 'Without' })
    expect(codeOf(refused)).toEqual([502, 'backend_error'])
  } finally {
    await other.close()
    await secure.close()
  }
})

test('a reload takes other groups and another provider, for the logins after it', async () => {
  const entry = await provider.entry(directory)
  const yaml = { sso: [entry] }
  const options = {
    get yaml() {
      return JSON.stringify(yaml)
    },
  }
  const other = await startApp(options)
  try {
    await logIn(other, provider, 'alice')
    yaml.sso = [{ ...entry, name: 'New', groups: [{ group: 'nobody', scopes: ['admin:*'] }] }]
    expect((await other.local.post('/v1/admin/reload')).status).toBe(200)
    expect((await callAsPage(other, 'GET', '/v1/console/login')).body).toEqual({ sso: [{ name: 'New' }] })
    expect(codeOf(await attempt(other, provider, 'alice', 'New'))).toEqual([403, 'not_allowed'])
  } finally {
    await other.close()
  }
})

test('ten failures a minute with one login; a hundred in all', async () => {
  const path = '/v1/console/login/sso/finish'
  const send = (cookie: string) =>
    callAsPage(app, 'POST', path, { parameters: 'code=x' }, { cookie: `mayfly-sso-state=${cookie}` })
  for (let n = 0; n < 10; n += 1) expect((await send('one')).status).toBe(401)
  expect(codeOf(await send('one'))).toEqual([429, 'rate_limited'])
  let others = 0
  while ((await send(`other-${others}`)).status === 401) others += 1
  // Some come back while they are sent.
  expect(others).toBeGreaterThanOrEqual(90)
  expect(others).toBeLessThan(180)
})

test('300 logins begin a minute in one network', async () => {
  for (const [method, path] of [
    ['GET', '/v1/console/login'],
    ['POST', '/v1/console/login/sso'],
  ] as const) {
    const body = method === 'GET' ? undefined : { provider: 'none' }
    let sent = 0
    while ((await callAsPage(app, method, path, body)).status !== 429) sent += 1
    expect(sent).toBeGreaterThanOrEqual(300)
    // Some come back while they are sent.
    expect(sent).toBeLessThan(450)
  }
})

test('without an entry, or with the console off, there is nothing of it', async () => {
  const none = await startSsoApp([])
  const off = await startSsoApp([await provider.entry(directory)], { argv: { console: 'off' } })
  try {
    expect((await callAsPage(none, 'GET', '/v1/console/login')).body).toEqual({ sso: [] })
    expect((await callAsPage(off, 'GET', '/v1/console/login')).status).toBe(404)
    expect((await callAsPage(off, 'POST', '/v1/console/login/sso', { provider: NAME })).status).toBe(404)
  } finally {
    await none.close()
    await off.close()
  }
})
