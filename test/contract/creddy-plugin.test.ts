import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Backend, Issued } from '../../src/backends/kind.ts'
import type { BackendError } from '../../src/domain/backend-error.ts'
import {
  type BuiltPlugin,
  openBuiltPlugin,
  type PluginRedis,
  startPluginRedis,
} from '../support/built-plugin.ts'
import { createTestHost } from '../support/host.ts'
import { canBuild } from '../support/plugins/build.ts'
import { poll } from '../support/server-process.ts'
import { never, newRequest } from './open-kind.ts'

const SCOPE = ['shop:read']

describe.skipIf(!(await canBuild('creddy-redis')))('a plugin of the existing protocol, unchanged', () => {
  let plugin: BuiltPlugin
  let redis: PluginRedis
  const opened: Backend[] = []
  const { host, logged } = createTestHost('cache')
  beforeAll(async () => {
    plugin = await openBuiltPlugin('creddy-redis')
    redis = await startPluginRedis()
  })
  afterAll(async () => {
    await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
    await redis?.stop()
  })

  beforeEach(async () => {
    for (const user of await redis.users('creddy-')) await redis.call('ACL', 'DELUSER', user)
  })

  async function open(overrides: object = {}): Promise<Backend> {
    const backend = await plugin.kind.open({ ...redis.config, ...overrides }, host)
    opened.push(backend)
    return backend
  }
  const loginOf = ({ secret = '' }: Issued) => new URL(secret)

  it('becomes a kind of its own name, with what it says of itself', () => {
    const { description } = plugin.pinned
    expect(description).toMatchObject({
      type: 'creddy-redis',
      title: 'Users of a Redis server',
      version: '0.3.1',
      limits: { minTtlMs: 10_000, maxTtlMs: 86_400_000, why: 'Users of more than a day are not wanted' },
      revocation: 'exact',
      recovers: false,
      scopes: { forms: [{ form: '<name>:read', gives: 'read the keys that begin with a prefix' }] },
    })
    expect(description.config).toEqual({
      type: 'object',
      additionalProperties: false,
      required: ['address', 'password'],
      properties: {
        address: { type: 'string', 'x-upstream': true, description: 'Host and port' },
        username: { type: 'string', 'x-upstream': true, description: 'May change users', default: 'default' },
        password: { type: 'string', 'x-secret': true, minLength: 1, description: 'Of that user' },
        delay_ms: {
          ...{ type: 'integer', 'x-upstream': true, default: 0 },
          description: 'Waits so long after it made a user',
        },
        commands: {
          ...{ type: 'array', items: { type: 'string' }, maxItems: 256, 'x-upstream': true },
          description: 'Further rules of its users',
        },
        notes: {
          ...{ type: 'string', 'x-secret': true, minLength: 1 },
          description: 'Is not used (the content of a file)',
        },
        forever: {
          ...{ type: 'boolean', 'x-upstream': true, default: false },
          description: 'Says of no user when it ends',
        },
      },
    })
    expect(plugin.kind.recovery).toBe('none')
  })

  it('learns who asks, for how long, and with which parameters', async () => {
    const backend = await open({ commands: ['%R~more*'] })
    const request = newRequest(SCOPE, { ttlMs: 61_900, params: { parameters: ['asked=a=b'] } })
    const before = Math.floor(Date.now() / 1_000)
    const issued = await backend.issue(request, never())
    const { username } = loginOf(issued)
    expect(username).toMatch(new RegExp(`^creddy-contract-${request.agent.id.slice(-6)}-[0-9a-f]{8}$`))
    expect(issued.facts).toEqual({ username, prefix: 'shop', asked: 'a=b' })
    expect(issued.handle).toEqual({ external_id: username, expires_at: issued.upstreamExpiresAt })
    // 61.9 seconds are 61 whole ones.
    expect((issued.upstreamExpiresAt ?? 0) / 1_000 - before - 61).toBeLessThan(60)
    expect((issued.upstreamExpiresAt ?? 0) / 1_000).toBeGreaterThanOrEqual(before + 61)
    expect(await redis.canRead(loginOf(issued), 'more')).toBe(true)
    await backend.revoke?.(issued.handle ?? {}, never())
  })

  it('says nothing of an expiry that the plugin does not know', async () => {
    const backend = await open({ forever: true })
    const issued = await backend.issue(newRequest(SCOPE), never())
    expect(issued.upstreamExpiresAt).toBeUndefined()
    expect(issued.handle).toMatchObject({ expires_at: null })
    await backend.revoke?.(issued.handle ?? {}, never())
  })

  it.each([
    [
      'several scopes',
      ['shop:read', 'other:read'],
      'A credential of this backend has exactly one scope; name it.',
    ],
    ['no scope', [], 'A credential of this backend has exactly one scope; name it.'],
    [
      'a scope that the plugin does not match',
      ['shop:write'],
      'The plugin of this backend does not know the scope.',
    ],
  ])('refuses %s before anything is made', async (_, scopes, message) => {
    const backend = await open()
    await expect(backend.issue(newRequest(scopes), never())).rejects.toMatchObject({
      fault: 'unsupported',
      message,
    })
    expect(await redis.users('creddy-')).toEqual([])
  })

  it('answers many quick calls at the same time', async () => {
    const backend = await open()
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 12 }, () =>
        expect(backend.issue(newRequest(['shop:write']), never())).rejects.toMatchObject({
          fault: 'unsupported',
        }),
      )
      await Promise.all(calls)
    }
  })

  it('knows its configuration again after its process was killed', async () => {
    const backend = await open()
    const before = await plugin.pids()
    for (const pid of before) process.kill(pid, 'SIGKILL')
    await poll('the processes have ended', async () =>
      (await plugin.pids()).every((pid) => !before.includes(pid)),
    )
    // The one that noticed the end may have been the call itself.
    const issued = await poll('another issues', () =>
      backend.issue(newRequest(SCOPE), never()).catch(() => false),
    )
    expect(await redis.canRead(loginOf(issued as Issued), 'shop')).toBe(true)
    await backend.revoke?.((issued as Issued).handle ?? {}, never())
  })

  it('keeps the configurations of two backends apart', async () => {
    const other = await startPluginRedis()
    const [first, second] = [await open(), await open({ ...other.config })]
    const [here, there] = [
      await first.issue(newRequest(SCOPE), never()),
      await second.issue(newRequest(SCOPE), never()),
    ]
    expect(await redis.users('creddy-')).toEqual([loginOf(here).username])
    expect(await other.users('creddy-')).toEqual([loginOf(there).username])
    await first.revoke?.(here.handle ?? {}, never())
    await second[Symbol.asyncDispose]()
    await other.stop()
  })

  it('revokes at once what it issues after the call was given up', async () => {
    const backend = await open({ delay_ms: 1_500 })
    const gaveUp = new AbortController()
    const issuing = backend.issue(newRequest(SCOPE), gaveUp.signal)
    const refused = expect(issuing).rejects.toMatchObject({ fault: 'timeout' })
    const [user] = await poll('the user is there', async () => {
      const users = await redis.users('creddy-')
      return users.length > 0 && users
    })
    gaveUp.abort()
    await refused
    await poll('the user is gone', async () => !(await redis.users('creddy-')).includes(user ?? ''))
    await poll('the log says so', () => logged().includes('"revoked":true'))
  })

  it('tells the log alone what the plugin says of its failures, without the secret in it', async () => {
    const backend = await open({ password: 'not-the-password' })
    const error = await backend.issue(newRequest(SCOPE), never()).then(
      () => expect.unreachable(),
      (thrown: BackendError) => thrown,
    )
    expect(error).toMatchObject({ fault: 'unavailable', message: 'The plugin creddy-redis did not issue.' })
    expect(error.detail).toContain('AUTH plugins [redacted]: WRONGPASS')
    const checked = expect(backend.check(never())).rejects
    await checked.toMatchObject({ fault: 'unavailable' })
  })

  it('reports a configuration that the plugin does not accept', async () => {
    await expect(open({ address: 'nowhere' })).rejects.toMatchObject({
      fault: 'misconfigured',
      message: 'The plugin creddy-redis does not accept its configuration.',
      detail: 'address: missing port in nowhere',
    })
  })

  it('fails to revoke what the plugin refuses, until that has expired by itself', async () => {
    const backend = await open()
    const handle = { external_id: 'somebody', expires_at: Date.now() + 60_000 }
    await expect(backend.revoke?.(handle, never())).rejects.toMatchObject({ fault: 'unavailable' })
    await backend.revoke?.({ ...handle, expires_at: Date.now() - 60_000 }, never())
    const unnamed = { external_id: '', expires_at: Date.now() + 60_000 }
    await expect(backend.revoke?.(unnamed, never())).rejects.toMatchObject({ fault: 'misconfigured' })
    await backend.revoke?.({ ...unnamed, expires_at: Date.now() - 60_000 }, never())
  })
})
