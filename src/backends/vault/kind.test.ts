import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { type FakeVault, startFakeVault } from '../../../test/support/fakes/vault.ts'
import { documentedPolicy } from '../../../test/support/fakes/vault-policy.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { BackendError } from '../../domain/backend-error.ts'
import type { Handle } from '../kind.ts'
import type { SecretConfig, TokenConfig } from './config.ts'
import { vault, vaultSecret } from './kind.ts'

const { host } = createTestHost('vault')
let server: FakeVault
let policy: string
beforeAll(async () => {
  server = await startFakeVault()
  policy = await documentedPolicy('vault.md')
  server.writePolicy('mayfly', policy)
  server.writePolicy('mayfly-secrets', await documentedPolicy('vault-secret.md'))
  server.writePolicy('orders-read', 'path "kv/orders" { capabilities = ["read"] }')
  server.writePolicy('orders-write', 'path "kv/orders/*" { capabilities = ["read", "update"] }')
})
afterAll(() => server.close())
afterEach(() => {
  server.before = async () => undefined
})

const POLICIES = ['orders-read', 'orders:all=orders-read orders-write']

function settingsOf(given: Partial<TokenConfig> = {}): TokenConfig {
  const { roleId, secretId } = server.newAppRole(['mayfly', 'orders-read', 'orders-write'])
  const auth = { auth: 'approle' as const, role: roleId, secret_id: secretId }
  return { address: server.address, ...auth, local: true, policies: POLICIES, ...given }
}

function secretsOf(secrets: readonly string[] = ['orders:read=database/creds/orders-read']): SecretConfig {
  const { roleId, secretId } = server.newAppRole(['mayfly-secrets'])
  const auth = { auth: 'approle' as const, role: roleId, secret_id: secretId }
  return { address: server.address, ...auth, local: true, secrets: [...secrets] }
}

const faultOf = (work: Promise<unknown>): Promise<Partial<BackendError>> =>
  work.then(
    () => ({}),
    ({ fault, message }: BackendError) => ({ fault, message }),
  )

/** Roles, and tokens and leases of roles, that are there. */
const left = () => [
  ...server.roles.keys(),
  ...[...server.tokens.values()].map(({ path }) => path).filter((path) => path.includes('mf_')),
  ...server.leases.keys(),
]

describe('a token', () => {
  test('has the policies of its scopes, no others, and an end of its own', async () => {
    await using backend = await vault.open(settingsOf(), host)
    const issue = async (...scopes: string[]) => {
      const { fields, handle = {} } = await backend.issue(newRequest(scopes) as never, never())
      const token = server.tokens.get(String(fields?.['token']))
      await backend.revoke?.(handle, never())
      return token
    }
    expect(await issue('orders-read')).toMatchObject({ policies: ['orders-read'], orphan: true })
    expect((await issue('orders'))?.policies).toEqual(['orders-read', 'orders-write'])
    expect((await issue('*'))?.policies).toEqual(['orders-read', 'orders-write'])
    expect((await issue('orders-read'))?.meta).toMatchObject({ agent_name: 'contract' })
    for (const scopes of [[], ['mayfly'], ['orders-write'], ['root'], ['a b']]) {
      expect(await faultOf(issue(...scopes))).toMatchObject({ fault: 'unsupported' })
    }
    expect(left()).toEqual([])
  })

  test('keeps the default policy only where it was asked for', async () => {
    await using backend = await vault.open(settingsOf({ policies: ['plain=orders-read default'] }), host)
    const { fields, handle = {} } = await backend.issue(newRequest(['plain']) as never, never())
    expect(server.tokens.get(String(fields?.['token']))?.policies).toEqual(['default', 'orders-read'])
    await backend.revoke?.(handle, never())
  })

  test('is found by the name of its role when no answer arrived, at each step', async () => {
    await using backend = await vault.open(settingsOf(), host)
    await backend.check(never())
    for (const step of ['auth/token/roles', 'auth/token/create']) {
      const request = newRequest(['orders-read'])
      server.before = async (_, path) => {
        // Whatever comes is done, and the connection is cut before the answer.
        if (path.startsWith(step)) setImmediate(() => abort.abort())
      }
      const abort = new AbortController()
      const outcome = await faultOf(backend.issue(request as never, abort.signal))
      server.before = async () => undefined
      if (outcome.fault !== undefined) expect(outcome.fault).toBe('timeout')
      await backend.revoke?.(backend.recover?.(request.credentialId) ?? {}, never())
      expect(left()).toEqual([])
    }
  })

  test('leaves no role behind when Vault refuses to create it', async () => {
    await using backend = await vault.open(settingsOf({ policies: ['admin'] }), host)
    const outcome = await faultOf(backend.issue(newRequest(['admin']) as never, never()))
    expect(outcome).toMatchObject({ fault: 'denied', message: expect.stringContaining('policies itself') })
    expect(left()).toEqual([])
  })

  test('of another name is never touched', async () => {
    await using backend = await vault.open(settingsOf(), host)
    for (const handle of [{}, { role: 'admin' }, { role: 'mf_x/../admin' }, { role: 1 }] as Handle[]) {
      expect(await faultOf(backend.revoke?.(handle, never()) ?? Promise.resolve())).toMatchObject({
        fault: 'misconfigured',
      })
    }
  })
})

describe('the login', () => {
  test('is used again, renewed before its end, and ended with the backend', async () => {
    let now = Date.now()
    const { roleId, secretId } = server.newAppRole(['mayfly', 'orders-read'], 900)
    const settings = settingsOf({ role: roleId, secret_id: secretId, policies: ['orders-read'] })
    const logins: string[] = []
    server.before = async (_, path) => {
      if (path.endsWith('/login')) logins.push(path)
    }
    const backend = await vault.open(settings, { ...host, now: () => now })
    await Promise.all([backend.check(never()), backend.check(never())])
    expect(logins).toHaveLength(1)
    now += 601_000
    await backend.check(never())
    expect(logins).toHaveLength(2)
    // Somebody revokes it.
    for (const [id, { path }] of server.tokens) if (path === 'auth/approle/login') server.tokens.delete(id)
    await backend.check(never())
    expect(logins).toHaveLength(3)
    await backend[Symbol.asyncDispose]()
    expect([...server.tokens.values()].filter(({ path }) => path === 'auth/approle/login')).toEqual([])
  })

  test('by a fixed token works, and one of root is warned of', async () => {
    const plain = { auth: 'token' as const, role: undefined as never, secret_id: undefined as never }
    const check = async (policies: readonly string[]) => {
      const settings = { ...settingsOf(plain), token: server.newToken(policies) }
      for (const field of ['role', 'secret_id']) Reflect.deleteProperty(settings, field)
      await using backend = await vault.open(settings, host)
      return backend.check(never())
    }
    expect(await check(['mayfly', 'default', 'orders-read', 'orders-write'])).toEqual([])
    expect(await check(['root'])).toEqual([expect.stringContaining('root')])
  })

  test.each([
    ['an unknown secret', { secret_id: 'wrong' }, 'Vault refused'],
    ['policies that it lacks', { policies: ['admin'] }, '"admin"'],
  ])('with %s fails the check', async (_, given, message) => {
    await using backend = await vault.open(settingsOf(given), host)
    expect((await faultOf(backend.check(never()))).message).toContain(message)
  })

  test.each([
    ['"delete"', 'auth/token/roles/mf_*', (text: string) => text.replace(', "delete"', '')],
    [
      '"update"',
      'auth/token/create/mf_*',
      (text: string) => text.replace('path "auth/token/create', 'path "x'),
    ],
    ['"sudo"', 'sys/leases/revoke-prefix', (text: string) => text.replace(', "sudo"', '')],
  ])('without %s on %s fails the check', async (capability, path, change) => {
    server.writePolicy('lacking', change(policy))
    const { roleId, secretId } = server.newAppRole(['lacking', 'orders-read', 'orders-write'])
    await using backend = await vault.open(settingsOf({ role: roleId, secret_id: secretId }), host)
    const { fault, message } = await faultOf(backend.check(never()))
    expect(fault).toBe('denied')
    expect(message).toContain(capability)
    expect(message).toContain(path)
    expect(left()).toEqual([])
  })

  test('cannot make a role that gives any policy', async () => {
    const token = server.newToken(['mayfly'])
    const write = (name: string, body: unknown) =>
      fetch(`${server.address}/v1/auth/token/roles/${name}`, {
        method: 'POST',
        headers: { 'x-vault-token': token, 'x-vault-request': 'true' },
        body: JSON.stringify(body),
      })
    expect((await write('mf_x', { allowed_policies: ['admin'] })).status).toBe(403)
    expect((await write('other', { orphan: true })).status).toBe(403)
  })
})

describe('a dynamic secret', () => {
  test('ends with its lease, and no later than its token', async () => {
    await using backend = await vaultSecret.open(secretsOf(), host)
    expect(await backend.check(never())).toEqual([])
    const request = newRequest(['orders'], { ttlMs: 7_200_000 })
    const { fields, handle = {}, upstreamExpiresAt = 0 } = await backend.issue(request as never, never())
    expect(Object.keys(fields ?? {}).sort()).toEqual(['password', 'username'])
    expect(upstreamExpiresAt - request.issuedAt).toBeLessThan(3_602_000)
    expect(server.leases.has(String(handle['lease']))).toBe(true)
    await backend.revoke?.(handle, never())
    expect(left()).toEqual([])
    await backend.issue(newRequest(['orders']) as never, never())
    const [listed] = (await backend.list?.(undefined, never()))?.items ?? []
    await backend.revoke?.(listed?.handle ?? {}, never())
    expect(left()).toEqual([])
  })

  test('needs a lease, one path, and the right to read it', async () => {
    const secrets = [
      'orders:read=database/creds/orders-read',
      'orders:write=database/creds/other',
      'kv=kv/orders',
    ]
    server.writePolicy(
      'mayfly-secrets-kv',
      `${await documentedPolicy('vault-secret.md')}\npath "kv/orders" { capabilities = ["read"] }`,
    )
    const { roleId, secretId } = server.newAppRole(['mayfly-secrets-kv'])
    const settings = { ...secretsOf(secrets), role: roleId, secret_id: secretId }
    await using backend = await vaultSecret.open(settings, host)
    const issue = (...scopes: string[]) => faultOf(backend.issue(newRequest(scopes) as never, never()))
    expect(await issue('orders')).toMatchObject({ fault: 'unsupported' })
    expect(await issue()).toMatchObject({ fault: 'unsupported' })
    expect(await issue('orders:write')).toMatchObject({ fault: 'denied' })
    expect(await issue('kv')).toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining('lease'),
    })
    expect(left()).toEqual([])
    expect(await faultOf(backend.check(never()))).toMatchObject({
      message: expect.stringContaining('database/creds/other'),
    })
  })
})

test.each([
  [{ address: 'http://vault.example.com:8200', local: false }, 'https'],
  [{ token: 'hvs.x' }, 'token'],
  [{ auth: 'jwt' }, 'secret_id'],
  [{ policies: ['root'] }, 'policies'],
  [{ policies: ['a=b root'] }, 'policies'],
  [{ policies: ['a*'] }, 'policies'],
  [{ auth_mount: '../sys' }, '..'],
] as [Partial<TokenConfig>, string][])('refuses the configuration %o', async (given, text) => {
  await expect(vault.complete?.(settingsOf(given))).rejects.toMatchObject({
    fault: 'misconfigured',
    message: expect.stringContaining(text),
  })
})

test.each(['sys/policy/x', 'auth/token/create', 'identity/entity', '../sys', 'a/./b', 'a b'])(
  'reads no secret at %s',
  async (path) => {
    await expect(vaultSecret.complete?.(secretsOf([`x=${path}`]))).rejects.toMatchObject({
      fault: 'misconfigured',
    })
  },
)
