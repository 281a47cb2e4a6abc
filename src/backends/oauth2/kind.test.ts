import { generateKeyPairSync } from 'node:crypto'
import { exportJWK, SignJWT } from 'jose'
import Value from 'typebox/value'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { answering } from '../../../test/support/answering.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { type OidcServer, startOidcServer } from '../../../test/support/oidc-server.ts'
import type { BackendError } from '../../domain/backend-error.ts'
import type { Host, Issued } from '../kind.ts'
import { type Config, config, revocableConfig } from './config.ts'
import { oauth2, oauth2Revocable } from './kind.ts'

let server: OidcServer
beforeAll(async () => {
  server = await startOidcServer()
})
afterAll(() => server.close())
afterEach(() => {
  server.before = async () => undefined
})

const { host } = createTestHost('api')

function settingsOf(given: Partial<Config> = {}): Config {
  const base = { token_endpoint: server.tokenEndpoint, client_id: 'basic', client_secret: server.secret }
  return Value.Default(config, { ...base, local: true, ...given }) as Config
}

async function refreshing(given: Partial<Config> = {}): Promise<Config> {
  return settingsOf({ grant: 'refresh_token', refresh_token: await server.signIn(), ...given })
}

async function issueOnce(settings: Config, scopes: readonly string[], on: Host = host): Promise<Issued> {
  await using backend = await oauth2.open(settings, on)
  return backend.issue(newRequest(scopes) as never, never())
}

const faultOf = (work: Promise<unknown>): Promise<Partial<BackendError>> =>
  work.then(
    () => ({}),
    ({ fault, message }: BackendError) => ({ fault, message }),
  )

describe('scopes', () => {
  test('are asked for one for one, exactly, and nothing is granted without one', async () => {
    const { secret = '', facts, upstreamExpiresAt = 0 } = await issueOnce(settingsOf(), ['orders:read'])
    expect(await server.introspect(secret)).toMatchObject({ active: true, scope: 'orders:read' })
    expect(facts).toEqual({ scope: 'orders:read' })
    const exp = ((await server.introspect(secret)).exp ?? 0) * 1_000
    expect(Math.abs(upstreamExpiresAt - exp)).toBeLessThan(2_000)
    const seen = server.seen.length
    for (const scopes of [[], ['*'], ['orders:*'], ['a b'], ['"']]) {
      expect(await faultOf(issueOnce(settingsOf(), scopes))).toMatchObject({ fault: 'unsupported' })
    }
    expect(server.seen).toHaveLength(seen)
  })

  test('have configured names, which a shorter scope or a * covers', async () => {
    const mapped = settingsOf({
      scopes: ['users:read=https://api.test/users.read', 'orders:read', 'orders:write'],
    })
    const granted = async (scopes: readonly string[]) =>
      (await server.introspect((await issueOnce(mapped, scopes)).secret ?? '')).scope
    expect(await granted(['users:read'])).toBe('https://api.test/users.read')
    expect(await granted(['orders'])).toBe('orders:read orders:write')
    expect(await granted(['*:read'])).toBe('https://api.test/users.read orders:read')
    expect(await faultOf(issueOnce(mapped, ['orders:delete']))).toMatchObject({ fault: 'unsupported' })
    expect(await faultOf(issueOnce(mapped, ['orders:read:eu']))).toMatchObject({ fault: 'unsupported' })
    expect(oauth2.scopes.gives?.(mapped, 'users')).toBe(true)
    expect(oauth2.scopes.gives?.(mapped, 'bills')).toBe(false)
    expect(oauth2.scopes.gives?.(settingsOf(), '*')).toBe(false)
  })

  test('that the server does not give are refused, and so is a server that gives more', async () => {
    expect(await faultOf(issueOnce(settingsOf(), ['admin']))).toMatchObject({ fault: 'unsupported' })
    await using generous = await answering({
      access_token: 'a'.repeat(40),
      token_type: 'bearer',
      expires_in: 60,
      scope: 'orders:read admin',
    })
    const settings = settingsOf({ token_endpoint: generous.url })
    expect(await faultOf(issueOnce(settings, ['orders:read']))).toMatchObject({ fault: 'denied' })
    expect((await issueOnce(settings, ['admin', 'orders:read'])).secret).toBe('a'.repeat(40))
  })
})

describe('the client', () => {
  test.each([
    ['basic', () => ({})],
    ['post', () => ({ client_id: 'post', client_auth: 'post' as const })],
    [
      'private_key_jwt',
      () => {
        const client = { client_id: 'signed', client_auth: 'private_key_jwt' as const, key_id: 'mayfly' }
        const { client_secret: _, ...rest } = settingsOf()
        return { ...rest, ...client, client_secret: undefined as never, private_key: server.privateKey }
      },
    ],
  ])('logs in by %s', async (_, given) => {
    const settings = settingsOf(JSON.parse(JSON.stringify(given())))
    if (settings.client_auth === 'private_key_jwt') Reflect.deleteProperty(settings, 'client_secret')
    const { secret = '' } = await issueOnce(settings, ['orders:read'])
    expect((await server.introspect(secret)).active).toBe(true)
  })

  test('learns from the check what is wrong', async () => {
    const check = async (settings: Config) => {
      await using backend = await oauth2.open(settings, host)
      return backend.check(never())
    }
    expect(await check(settingsOf())).toEqual([])
    const wrong = settingsOf({ client_secret: 'wrong' })
    expect(await faultOf(check(wrong))).toMatchObject({
      fault: 'denied',
      message: expect.stringContaining('login'),
    })
    const narrow = settingsOf({ client_id: 'narrow' })
    expect(await faultOf(check(narrow))).toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining('request'),
    })
    const scopes = settingsOf({ scopes: ['orders:read', 'all=admin'] })
    expect(await faultOf(check(scopes))).toMatchObject({ fault: 'unsupported' })
    const lost = settingsOf({ token_endpoint: `${server.url}/nowhere` })
    expect(await faultOf(check(lost))).toMatchObject({ fault: 'misconfigured' })
    const kept = await refreshing()
    expect(await check(kept)).toEqual([])
    // If the backend is not stored, the next try still needs it.
    expect(await server.isUsable(kept.refresh_token ?? '')).toBe(true)
    const stranger = await refreshing({ client_secret: 'wrong' })
    expect(await faultOf(check(stranger))).toMatchObject({ fault: 'denied' })
    const ended = settingsOf({ grant: 'refresh_token', refresh_token: 'x'.repeat(43) })
    expect(await faultOf(issueOnce(ended, ['orders:read']))).toMatchObject({
      message: expect.stringContaining('sign in again'),
    })
  })

  test.each([
    [{ token_endpoint: 'http://login.example.com/token', local: false }, 'https'],
    [{ client_auth: 'private_key_jwt' }, 'client_secret'],
    [{ grant: 'refresh_token' }, 'refresh_token'],
    [{ subject_token: 'x' }, 'subject_token'],
    [{ scopes: ['a*=b'] }, 'scopes'],
    [{ scopes: ['a=b"c'] }, 'scopes'],
  ] as [Partial<Config>, string][])('refuses the configuration %o', async (given, field) => {
    await expect(oauth2.complete?.(settingsOf(given))).rejects.toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining(field),
    })
  })
})

describe('a refresh token', () => {
  test('rotates with each use, on several nodes at the same time, and after a restart', async () => {
    const settings = await refreshing()
    const nodes = await Promise.all([0, 1, 2].map(() => oauth2.open(settings, host)))
    const all = await Promise.all(
      Array.from({ length: 15 }, (_, n) =>
        nodes[n % 3]?.issue(newRequest(['orders:read']) as never, never()),
      ),
    )
    for (const issued of all) expect((await server.introspect(issued?.secret ?? '')).active).toBe(true)
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()))
    expect(await server.isUsable(settings.refresh_token ?? '')).toBe(false)
    expect((await issueOnce(settings, ['orders:write'])).facts).toEqual({ scope: 'orders:write' })
  })

  test('is kept although nobody waits for the reply any more', async () => {
    const settings = await refreshing()
    await using backend = await oauth2.open(settings, host)
    for (let round = 0; round < 5; round += 1) {
      const abort = new AbortController()
      const reached = Promise.withResolvers<void>()
      server.before = async () => reached.resolve()
      const issuing = backend.issue(newRequest(['orders:read']) as never, abort.signal)
      await reached.promise
      abort.abort()
      expect(await faultOf(issuing)).toMatchObject({ fault: 'timeout' })
    }
    server.before = async () => undefined
    await backend.issue(newRequest(['orders:read']) as never, never())
  })

  test('is used by another node once the claim of a dead one has ended', async () => {
    const settings = await refreshing()
    let now = Date.now()
    const on: Host = { ...createTestHost('api').host, now: () => now }
    const claimed = Promise.withResolvers<void>()
    const watched: Host['state'] = {
      read: on.state.read,
      replace: async (before, after) => {
        const done = await on.state.replace(before, after)
        claimed.resolve()
        return done
      },
    }
    void (await oauth2.open(settings, { ...on, state: watched, fetch: () => new Promise(() => undefined) }))
      .issue(newRequest(['orders:read']) as never, never())
      .catch(() => undefined)
    await claimed.promise
    await using other = await oauth2.open(settings, on)
    const waiting = other.issue(newRequest(['orders:read']) as never, AbortSignal.timeout(200))
    expect(await faultOf(waiting)).toMatchObject({ fault: 'timeout' })
    now += 3 * on.timeoutMs
    await other.issue(newRequest(['orders:read']) as never, never())
  })

  test('that the store does not take is known to this process, until it does', async () => {
    const settings = await refreshing()
    const { state } = host
    let failing = false
    const on: Host = {
      ...host,
      state: {
        read: state.read,
        replace: (before, after) =>
          failing ? Promise.reject(new Error('full')) : state.replace(before, after),
      },
    }
    let now = Date.now()
    await using backend = await oauth2.open(settings, { ...on, now: () => now })
    server.before = async () => {
      failing = true
    }
    const issue = () => backend.issue(newRequest(['orders:read']) as never, never())
    expect(await faultOf(issue())).toMatchObject({ fault: 'unavailable' })
    failing = false
    server.before = async () => undefined
    now += 3 * host.timeoutMs
    expect((await issue()).secret).toBeDefined()
    expect((await issueOnce(settings, ['orders:read'])).secret).toBeDefined()
  })

  test('of a trial leaves that of the backend alone', async () => {
    const settings = await refreshing()
    await issueOnce(settings, ['orders:read'])
    for (let trial = 0; trial < 10; trial += 1) {
      const wrong = settingsOf({ grant: 'refresh_token', refresh_token: `wrong ${trial} ${'x'.repeat(40)}` })
      expect(await faultOf(issueOnce(wrong, ['orders:read']))).toMatchObject({ fault: 'denied' })
    }
    await using trial = await oauth2.open(await refreshing(), host)
    await trial.check(never())
    await issueOnce(settings, ['orders:read'])
  })

  test('is not used for revocable tokens where their revocation ends it', async () => {
    const given = { ...(await refreshing()), revocation_endpoint: server.revocationEndpoint }
    const settings = Value.Default(revocableConfig, given) as never
    await using backend = await oauth2Revocable.open(settings, host)
    expect(await faultOf(backend.check(never()))).toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining('whole sign-in'),
    })
  })
})

test('a token of Mayfly for the agent is exchanged', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...(await exportJWK(publicKey)), kid: '1', alg: 'ES256' }
  await using keys = await answering({ keys: [jwk] })
  const issuer = 'https://mayfly.test'
  server.trust({ jwks: keys.url, issuer, audience: server.tokenEndpoint })
  const on: Host = {
    ...host,
    idToken: ({ audience, subject, expiresAt, claims }) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: '1' })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(subject)
        .setExpirationTime(Math.floor(expiresAt / 1_000))
        .sign(privateKey),
  }
  const settings = settingsOf({ grant: 'token_exchange' })
  const { secret = '' } = await issueOnce(settings, ['orders:read'], on)
  expect(await server.introspect(secret)).toMatchObject({ active: true, scope: 'orders:read' })
  const other = settingsOf({ grant: 'token_exchange', subject_audience: 'another' })
  expect(await faultOf(issueOnce(other, ['orders:read'], on))).toMatchObject({ fault: 'denied' })
})
