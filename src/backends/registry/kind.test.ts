import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { eventually } from '../../../test/support/app.ts'
import { createDockerRegistry, type DockerRegistry } from '../../../test/support/docker-registry.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { BackendError } from '../../domain/backend-error.ts'
import { generateKey } from './keys.ts'
import { type Config, registry } from './kind.ts'

const { host } = createTestHost('images')
let server: DockerRegistry
let settings: Config
beforeAll(async () => {
  server = await createDockerRegistry()
  const base: Config = { address: `http://${server.host}`, leeway: 60, local: true }
  settings = (await registry.complete?.(base)) ?? base
  await server.start({ issuer: host.issuer, certificate: settings.certificate ?? '' })
})
afterAll(() => server.close())

async function tokenFor(scopes: readonly string[], given: Partial<Config> = {}, ttlMs?: number) {
  await using backend = await registry.open({ ...settings, ...given }, host)
  const request = newRequest(scopes, ttlMs === undefined ? {} : { ttlMs })
  const { fields, upstreamExpiresAt = 0 } = await backend.issue(request as never, never())
  return { token: String(fields?.['token']), upstreamExpiresAt }
}

const accessFor = async (scopes: readonly string[], given?: Partial<Config>) =>
  decodeJwt((await tokenFor(scopes, given)).token)['access']

describe('access', () => {
  test.each([
    [['app:pull'], [{ type: 'repository', name: 'app', actions: ['pull'] }]],
    [['team/app:push'], [{ type: 'repository', name: 'team/app', actions: ['pull', 'push'] }]],
    [['a:pull', 'a:delete'], [{ type: 'repository', name: 'a', actions: ['delete', 'pull'] }]],
    [['a'], [{ type: 'repository', name: 'a', actions: ['delete', 'pull', 'push'] }]],
    [['a:*'], [{ type: 'repository', name: 'a', actions: ['delete', 'pull', 'push'] }]],
    [[], []],
  ])('for %j is exactly what was granted', async (scopes, access) => {
    expect(await accessFor(scopes)).toEqual(access)
  })

  test('for a * is that of the configured repositories', async () => {
    const repositories = ['team/app', 'team/web', 'other/app']
    const names = async (scope: string) =>
      ((await accessFor([scope], { repositories })) as { name: string }[]).map(({ name }) => name)
    expect(await names('team/*:pull')).toEqual(['team/app', 'team/web'])
    expect(await names('*:pull')).toEqual(repositories)
    await expect(names('secret:pull')).rejects.toMatchObject({ fault: 'unsupported' })
    await expect(accessFor(['team/*:pull'])).rejects.toMatchObject({ fault: 'unsupported' })
    expect(registry.scopes.gives?.(settings, '*')).toBe(false)
    expect(registry.scopes.gives?.({ ...settings, repositories }, 'team/*')).toBe(true)
  })

  test.each(['App:pull', 'a/:pull', '/a', 'a//b', 'a..b', 'a:read', 'a:pull:x', '-a', 'a*b:pull', '../a'])(
    'is refused for %s',
    (scope) => {
      expect(registry.scopes.valid(scope)).toBe(false)
    },
  )
})

test('a token ends when its credential does, although the registry allows for a late clock', async () => {
  // On a slow machine one may expire before it is used.
  const { ask, upstreamExpiresAt } = await eventually(async () => {
    const { token, upstreamExpiresAt } = await tokenFor(['app:pull'], {}, 3_000)
    const authorization = `Bearer ${token}`
    const ask = async () =>
      (await fetch(`http://${server.host}/v2/app/tags/list`, { headers: { authorization } })).status
    // No image: the token was accepted.
    expect(await ask()).toBe(404)
    return { ask, upstreamExpiresAt }
  })
  let accepted = 0
  await eventually(async () => {
    const asked = Date.now()
    const status = await ask()
    if (status === 404) accepted = asked
    expect(status).toBe(401)
  })
  // The registry counts whole seconds; with the time that it allows, the token would last a minute longer.
  expect(accepted).toBeLessThan(upstreamExpiresAt + 2_000)
  expect(Date.now()).toBeGreaterThan(upstreamExpiresAt - 2_000)
})

describe('the check', () => {
  const check = async (given: Partial<Config>) => {
    await using backend = await registry.open({ ...settings, ...given }, host)
    return backend.check(never())
  }

  test('is content with a registry that accepts our tokens', async () => {
    expect(await check({})).toEqual([])
  })

  test('tells what the registry lacks', async () => {
    const base: Config = { address: settings.address, leeway: 60, local: true }
    const other = (await registry.complete?.(base)) ?? base
    expect(await check(other)).toEqual([expect.stringContaining('rootcertbundle')])
    expect(await check({ service: 'other' })).toEqual([expect.stringContaining('"service"')])
    expect(await check({ address: 'http://127.0.0.1:1' })).toEqual([
      expect.stringContaining('cannot be reached'),
    ])
  })

  test('is content after a change that leaves the certificate out', async () => {
    const { certificate, ...rest }: Config = settings
    const again: Config = (await registry.complete?.(rest)) ?? rest
    expect(again.certificate).toBe(certificate)
    expect(await check(again)).toEqual([])
  })
})

test('publishes the key by which it signs', async () => {
  await using backend = await registry.open(settings, host)
  const { token } = await tokenFor(['app:pull'])
  const { kid } = decodeProtectedHeader(token)
  expect(backend.publicKeys?.()).toEqual([expect.objectContaining({ kid, kty: 'EC', use: 'sig' })])
  expect(JSON.stringify(backend.publicKeys?.())).not.toContain('"d"')
})

test.each([
  [{ address: 'http://registry.example.com', local: false }, 'https'],
  [{ signing_key: 'x' }, 'signing_key'],
  [{ certificate: 'x' }, 'certificate'],
  [{ signing_key: undefined }, 'certificate'],
] as [Partial<Config>, string][])('refuses the configuration %o', async (given, field) => {
  const wrong = (await registry
    .complete?.({ ...settings, ...given })
    .catch((error: BackendError) => error)) as BackendError | undefined
  expect(wrong).toMatchObject({ fault: 'misconfigured', message: expect.stringContaining(field) })
})

test('refuses a certificate of another key', async () => {
  await expect(registry.complete?.({ ...settings, signing_key: await generateKey() })).rejects.toMatchObject({
    fault: 'misconfigured',
  })
})
