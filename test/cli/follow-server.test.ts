import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, SignJWT } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { type Authority, newAuthority } from './certificates.ts'
import { configOf, type Home } from './login-support.ts'
import { newHome, runCli } from './support.ts'
import { type Address, type Answer, newAddress, outside } from './turning-address.ts'

let directory: string
let authority: Authority
const open: { close(): Promise<unknown> }[] = []
let who: Home
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-follow-'))
  authority = await newAuthority(directory)
})
afterAll(() => rm(directory, { recursive: true, force: true }))
beforeEach(async () => {
  who = await newHome()
})
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
  await rm(who.home, { recursive: true, force: true })
})

const kept = <T extends { close(): Promise<unknown> }>(one: T): T => {
  open.push(one)
  return one
}
const cli = (...argv: string[]) => runCli(argv, { env: { ...who.env, MAYFLY_CA_FILE: authority.caFile } })
const profile = async () => (await configOf(who)).profiles.default
const loopback = async () => kept(await newAddress())
async function elsewhere() {
  const tls = await authority.issue({ name: `a${open.length}`, ips: [outside ?? ''] })
  return kept(await newAddress(tls))
}
/** One server, with its store, under another issuer: a new configuration after a restart. */
async function startAs(issuer: string, before?: TestApp, argv: object = {}): Promise<TestApp> {
  const yaml =
    'policies: [{name: all, pattern: "*", scopes: [demo], auto_approve: true}]\nlimits: {enrollments_per_minute: 1000}'
  const node =
    before?.databaseUrl === undefined
      ? { dialect: 'postgres' as const }
      : { databaseUrl: before.databaseUrl, masterKeyFile: join(before.directory, 'master.key') }
  return kept(await startApp({ yaml, ...node, argv: { issuer, ...argv } }))
}
async function enrollAt(address: Address, ...more: string[]) {
  const name = `f-${Math.random().toString(36).slice(2)}`
  expect(await cli('enroll', '--server', address.url, '--name', name, ...more)).toMatchObject({ code: 0 })
}
/** A command that has to log in, because its cache is empty. */
async function status() {
  await rm(join(who.home, 'cache'), { recursive: true, force: true })
  return cli('status')
}

describe('a login by an enrolled key, after the issuer has changed', () => {
  test('follows it at an address of this machine, says so, and remembers it', async () => {
    const address = await loopback()
    const old = await startAs(address.url)
    address.turn(old)
    await enrollAt(address)
    const renamed = await startAs('https://mayfly.example.com', old)
    address.turn(renamed)
    const first = await status()
    expect(first.code).toBe(0)
    expect(first.stderr).toBe(
      `mayfly: the server at ${address.url} is https://mayfly.example.com now; your login follows it.\n`,
    )
    expect(await profile()).toMatchObject({ server: address.url, issuer: 'https://mayfly.example.com' })
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
  })

  test('follows it while previous_issuers still accepts the old one', async () => {
    const address = await loopback()
    const old = await startAs(address.url)
    address.turn(old)
    await enrollAt(address)
    const issuer = 'https://mayfly.example.com'
    address.turn(await startAs(issuer, old, { previousIssuer: [address.url] }))
    expect(await status()).toMatchObject({ code: 0, stderr: expect.stringContaining('follows it') })
    expect(await profile()).toMatchObject({ issuer })
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
  })

  test('is not taken for a new agent by `mayfly enroll`', async () => {
    const address = await loopback()
    const old = await startAs(address.url)
    address.turn(old)
    await enrollAt(address)
    address.turn(await startAs('https://mayfly.example.com', old))
    const end = await cli('enroll')
    expect([end.code, end.stderr]).toEqual([0, expect.stringContaining('Already enrolled as the agent f-')])
  })

  test('follows no other server', async () => {
    const address = await loopback()
    address.turn(await startAs(address.url))
    await enrollAt(address)
    const before = await profile()
    address.turn(await startAs('https://other.example.com'))
    const end = await status()
    expect([end.code, end.stderr]).toEqual([4, expect.stringContaining('has none of the keys')])
    expect(await profile()).toEqual(before)
    for (const form of address.logins)
      expect(decodeJwt(form.get('client_assertion') ?? '').aud).toBe(address.url)
  })
})

describe.skipIf(outside === undefined)('a login by an enrolled key, after its server has moved', () => {
  /** An agent of a server at `from`, which calls itself `to` from now on. */
  async function moved() {
    const [from, to] = [await elsewhere(), await elsewhere()]
    const old = await startAs(from.url)
    from.turn(old)
    await enrollAt(from)
    const now = await startAs(to.url, old)
    return { from, to, now }
  }

  test('goes to the new address, and signs for it there alone', async () => {
    const { from, to, now } = await moved()
    from.turn(now)
    to.turn(now)
    const end = await status()
    expect([end.code, end.stderr]).toEqual([
      0,
      `mayfly: the server at ${from.url} has moved to ${to.url}; your login follows it.\n`,
    ])
    expect(await profile()).toMatchObject({ server: to.url, issuer: to.url })
    for (const form of from.logins) expect(decodeJwt(form.get('client_assertion') ?? '').aud).toBe(from.url)
    // The token that came from there is used there.
    expect(to.asked).toContain('GET /v1/status')
    from.turn((_, __, outgoing) => void outgoing.destroy())
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
  })

  test('signs nothing for the real server that whoever has its old address could use', async () => {
    const { from, to, now } = await moved()
    // The old address passes on what the real server says of itself, but the command cannot reach that.
    from.turn(now)
    to.turn((_, __, outgoing) => void outgoing.destroy())
    const end = await status()
    expect([end.code, end.stderr]).toEqual([4, expect.stringContaining('which could not be confirmed there')])
    expect(end.stderr).toContain(`mayfly login --move --server ${to.url} --profile default`)
    for (const form of from.logins) expect(decodeJwt(form.get('client_assertion') ?? '').aud).toBe(from.url)
    expect(await profile()).toMatchObject({ server: from.url, issuer: from.url })
  })

  test('does not go where copied keys are all that proves the server', async () => {
    const { from, to, now } = await moved()
    const jwks = JSON.stringify((await now.as(undefined).get('/.well-known/jwks.json')).body)
    const forged = await new SignJWT({ iss: to.url, scopes: [] })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: JSON.parse(jwks).keys[0].kid })
      .sign(Buffer.alloc(32))
    const thief: Answer = ({ url }, _, outgoing) => {
      const replies: Record<string, string> = {
        '/.well-known/openid-configuration': JSON.stringify({ issuer: to.url }),
        '/.well-known/jwks.json': jwks,
        '/oauth/token': JSON.stringify({
          access_token: forged,
          token_type: 'Bearer',
          expires_in: 60,
          scope: '',
        }),
      }
      const isOld = from.asked.at(-1) === `POST ${url}` && to.asked.length === 0
      outgoing.writeHead(isOld ? 401 : 200, { 'content-type': 'application/json' })
      outgoing.end(isOld ? '{"error":"invalid_client"}' : (replies[url ?? ''] ?? '{}'))
    }
    from.turn(thief)
    to.turn(thief)
    expect((await status()).stderr).toContain('which could not be confirmed there')
    expect(to.logins).toHaveLength(1)
    expect(await profile()).toMatchObject({ server: from.url, issuer: from.url })
  })

  test('is moved by `mayfly login --move`, where the old address is gone', async () => {
    const { from, to, now } = await moved()
    to.turn(now)
    expect((await cli('login', '--move')).code).toBe(2)
    const end = await cli('login', '--move', '--server', to.url)
    expect([end.code, end.stderr]).toEqual([0, expect.stringContaining(`is now for ${to.url}`)])
    expect(await profile()).toMatchObject({ server: to.url, issuer: to.url })
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
    expect(from.asked.filter((one) => one === 'GET /v1/status')).toEqual([])
  })

  test('is moved to no other server', async () => {
    const { to } = await moved()
    to.turn(await startAs(to.url))
    const before = await profile()
    const end = await cli('login', '--move', '--server', to.url)
    expect([end.code, end.stderr]).toEqual([1, expect.stringContaining('so it is another server')])
    expect(to.logins).toEqual([])
    expect(await profile()).toEqual(before)
  })
})

describe('enrolling', () => {
  test('takes two names of the loopback with one port for one address', async () => {
    const address = await loopback()
    address.turn(await startAs(address.url.replace('127.0.0.1', 'localhost')))
    await enrollAt(address)
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
  })

  test('sends nothing to a server that says it is another, unless --issuer names that one', async () => {
    const address = await loopback()
    address.turn(await startAs('https://mayfly.example.com'))
    const end = await cli('enroll', '--server', address.url, '--name', 'x')
    expect(end.code).toBe(5)
    expect(end.stderr).toContain(`The server at ${address.url} says that it is https://mayfly.example.com.`)
    expect(end.stderr).toContain('--issuer https://mayfly.example.com')
    expect(address.asked.filter((one) => one.startsWith('POST'))).toEqual([])
    const wrong = await cli('enroll', '--server', address.url, '--issuer', 'https://mine.example.com')
    expect([wrong.code, wrong.stderr]).toEqual([5, expect.stringContaining('not https://mine.example.com')])
    await enrollAt(address, '--issuer', 'https://mayfly.example.com', '--restart')
    expect(await status()).toMatchObject({ code: 0, stderr: '' })
  })

  test.each([
    ['y', 0],
    ['n', 5],
  ])('asks on a terminal, and %s ends with %i', async (answer, code) => {
    const address = await loopback()
    address.turn(await startAs('https://mayfly.example.com'))
    const argv = ['enroll', '--server', address.url, '--name', `asked-${answer}`]
    const end = await runCli(argv, { env: who.env, tty: true, stdin: `${answer}\n` })
    expect(end.stderr).toContain('says that it is https://mayfly.example.com. Go on? [y/N]')
    expect(end.code).toBe(code)
    if (code !== 0) expect(address.asked.filter((one) => one.startsWith('POST'))).toEqual([])
  })

  test('shows no issuer that a terminal or a shell could take for more than an address', async () => {
    const address = await loopback()
    address.turn(({ url }, _, outgoing) => {
      outgoing.writeHead(url?.startsWith('/.well-known') ? 200 : 404, { 'content-type': 'application/json' })
      outgoing.end(JSON.stringify({ issuer: 'https://x.example/`touch x`', keys: [] }))
    })
    const end = await cli('enroll', '--server', address.url, '--name', 'x')
    expect([end.code, end.stderr]).toEqual([3, expect.not.stringContaining('touch')])
  })
})
