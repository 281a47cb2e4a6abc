import { once } from 'node:events'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { openRedisBench, type RedisBench } from '../../../test/support/redis-kind.ts'
import type { Backend, Handle, Issued } from '../kind.ts'

let bench: RedisBench
let backend: Backend
const clients: Redis[] = []
beforeAll(async () => {
  bench = await openRedisBench()
  backend = await bench.open()
})
afterAll(async () => {
  for (const client of clients) client.disconnect()
  await bench?.close()
})

const issue = (...scopes: string[]) => backend.issue(newRequest(scopes), never())
const revoke = (handle: Handle | undefined) => backend.revoke?.(handle ?? {}, never())
const isThere = async (name: unknown) => (await bench.call('ACL', 'GETUSER', String(name))) !== null
function login({ fields }: Issued): Redis {
  const client = bench.login({
    username: String(fields?.['username']),
    password: String(fields?.['password']),
  })
  clients.push(client)
  return client
}

describe('what a credential may do', () => {
  it('is what its scopes say', async () => {
    await bench.call('MSET', 'shop:1', 'a', 'other:1', 'b', 'shopping', 'c')
    const reader = login(await issue('read:shop:*', 'write:cart'))
    expect(await reader.get('shop:1')).toBe('a')
    expect(await reader.multi().set('cart', 1).incr('cart').rename('cart', 'cart:2').exec()).toHaveLength(3)
    expect(await reader.lpush('cart:list', 'x')).toBe(1)
    expect(await reader.blpop('cart:list', 1)).toEqual(['cart:list', 'x'])
    for (const beyond of [
      ['GET', 'other:1'],
      ['GET', 'shopping'],
      ['SET', 'shop:1', 'x'],
      ['GETDEL', 'shop:1'],
      ['RENAME', 'shop:1', 'cart'],
      ['COPY', 'shop:1', 'other:2'],
      ['SORT', 'cart:list', 'GET', 'other:*'],
      ['EVAL', 'return redis.call("GET", "other:1")', '0'],
    ] as [string, ...string[]][]) {
      await expect(reader.call(...beyond), beyond.join(' ')).rejects.toThrow('NOPERM')
    }
  })

  it('never reaches beyond its keys, whatever the scopes', async () => {
    const client = login(await issue('*'))
    expect(await client.dbsize()).toBeGreaterThan(0)
    expect(await client.eval('return redis.call("GET", "shop:1")', 0)).toBe('a')
    const inner = login(await issue('write:shop:*', 'script'))
    expect(await inner.eval('return redis.call("GET", KEYS[1])', 1, 'shop:1')).toBe('a')
    await expect(inner.eval('return redis.call("GET", "other:1")', 0)).rejects.toThrow(
      /access at least one of the keys/,
    )
    for (const command of ['KEYS *', 'SCAN 0', 'RANDOMKEY', 'DBSIZE', 'CLIENT TRACKING ON BCAST'])
      await expect(inner.call(...(command.split(' ') as [string])), command).rejects.toThrow('NOPERM')
    for (const command of [
      ...[
        'ACL LIST',
        'ACL WHOAMI',
        'CONFIG GET *',
        'FLUSHALL',
        'FLUSHDB',
        'SHUTDOWN',

        'MONITOR',
      ],
      ...[
        'CLIENT LIST',
        'CLIENT KILL ID 1',
        'SCRIPT FLUSH',
        'FUNCTION FLUSH',
        'REPLICAOF NO ONE',
        'MODULE LIST',
        'SELECT 1',
      ],
      ...['MIGRATE 127.0.0.1 1 shop:1 0 1', 'RESTORE x 0 y', 'SWAPDB 0 1', 'MOVE shop:1 1', 'SAVE', 'INFO'],
    ])
      await expect(client.call(...(command.split(' ') as [string])), command).rejects.toThrow('NOPERM')
  })

  it('includes channels only where a scope names them', async () => {
    const client = login(await issue('channel:news', 'read:shop:*'))
    expect(await client.publish('news:sport', 'x')).toBe(0)
    await expect(client.publish('other', 'x')).rejects.toThrow('NOPERM')
    await expect(client.call('PUBSUB', 'CHANNELS')).rejects.toThrow('NOPERM')
    await expect(login(await issue('write')).publish('news', 'x')).rejects.toThrow('NOPERM')
    const nobody = login(await issue())
    expect(await nobody.ping()).toBe('PONG')
    await expect(nobody.get('shop:1')).rejects.toThrow('NOPERM')
  })

  it('is in no other database, nor given by a backend that names one', async () => {
    const other = await bench.open({ database: 3 })
    const refused = { fault: 'misconfigured', message: expect.stringContaining('"database" to 0') }
    await expect(other.issue(newRequest(['write:shop:*']), never())).rejects.toMatchObject(refused)
    await expect(other.check(never())).rejects.toMatchObject(refused)
    const issued = await issue('write')
    await expect(login(issued).select(3)).rejects.toThrow('NOPERM')
    await other.revoke?.(issued.handle ?? {}, never())
    expect(await isThere(issued.handle?.['username'])).toBe(false)
  })
})

describe('the end of a credential', () => {
  it('closes its connections, also those that wait or listen', async () => {
    const issued = await issue('*')
    const [idle, blocked, listening] = [login(issued), login(issued), login(issued)]
    await idle.ping()
    await listening.subscribe('news')
    const popped = blocked.blpop('nothing', 0).catch((error: Error) => error)
    const isBlocked = async () => expect(String(await bench.call('CLIENT', 'LIST'))).toContain('cmd=blpop')
    await vi.waitFor(isBlocked, 60_000)
    const ends = [idle, blocked, listening].map((client) => once(client, 'end'))
    await revoke(issued.handle)
    await Promise.all(ends)
    expect(await popped).toBeInstanceOf(Error)
    await expect(login(issued).ping()).rejects.toThrow()
  })

  it('is final although the server reads the command to create it only then', async () => {
    await revoke((await issue()).handle)
    bench.freeze()
    const other = await bench.open()
    const abort = new AbortController()
    const request = newRequest(['read'])
    const issuing = backend.issue(request, abort.signal).catch((error: unknown) => error)
    // It has been written: the connection is there.
    await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    expect(await issuing).toMatchObject({ fault: 'timeout' })
    const handle = backend.recover?.(request.credentialId) ?? {}
    // Another instance, on another connection, as after a crash.
    const revoking = other.revoke?.(handle, never())
    bench.thaw()
    await revoking
    await bench.call('PING')
    expect(await isThere(handle['username'])).toBe(false)
  })

  it('never deletes a user of another name', async () => {
    for (const username of ['root', 'mayfly', 'mf_', `mf_${'z'.repeat(26)}`, 7, null])
      await expect(revoke({ username })).rejects.toMatchObject({ fault: 'misconfigured' })
    expect(await isThere('mayfly')).toBe(true)
  })
})

describe('the preflight', () => {
  it.each(['+acl|setuser', '+acl|deluser', '+acl|users', '+ping', '+acl|save'])(
    'names %s when it is missing',
    async (rule) => {
      await bench.call('ACL', 'SETUSER', 'mayfly', rule.replace('+', '-'))
      const other = await bench.open({ persist: true })
      await expect(other.check(never())).rejects.toMatchObject({
        fault: 'denied',
        message: `The user that Mayfly uses lacks ${rule}.`,
      })
      await bench.call('ACL', 'SETUSER', 'mayfly', rule)
      expect(await other.check(never())).toEqual([])
    },
  )

  it('names a refused login, and warns of a server that lets everybody in', async () => {
    const wrong = await bench.open({ password: 'wrong' })
    await expect(wrong.check(never())).rejects.toMatchObject({
      fault: 'denied',
      message: 'Redis refused the login.',
    })
    await bench.call('ACL', 'SETUSER', 'default', 'on', 'nopass', '+@all')
    expect(await backend.check(never())).toEqual([expect.stringContaining('lets everybody in')])
    const everybody = await bench.open({ username: 'default' })
    expect(await everybody.check(never())).toHaveLength(2)
    await bench.call('ACL', 'SETUSER', 'default', 'off')
  })

  it('says why a credential cannot be ended when only that is missing', async () => {
    const issued = await issue('read')
    await bench.call('ACL', 'SETUSER', 'mayfly', '-acl|deluser')
    const refused = { fault: 'denied', message: expect.stringContaining('lacks a permission') }
    await expect(revoke(issued.handle)).rejects.toMatchObject(refused)
    await bench.call('ACL', 'SETUSER', 'mayfly', '+acl|deluser')
    await revoke(issued.handle)
    expect(await isThere(issued.handle?.['username'])).toBe(false)
  })
})

describe('TLS', () => {
  const check = async (overrides: object) =>
    (await bench.open({ port: bench.tlsPort, ...overrides })).check(never())

  it('trusts a certificate of the configured authority, for a name and for an address', async () => {
    await check({ host: 'localhost', tls: 'verify-full', ca: bench.ca })
    await check({ host: '127.0.0.1', tls: 'verify-full', ca: bench.ca })
    await check({ host: '127.0.0.2', tls: 'require' })
  })

  it('refuses an authority that is not configured, and another name', async () => {
    const refused = { fault: 'misconfigured', message: 'Redis has a certificate that is not trusted.' }
    await expect(check({ tls: 'verify-full' })).rejects.toMatchObject(refused)
    await expect(check({ host: '127.0.0.2', tls: 'verify-full', ca: bench.ca })).rejects.toMatchObject(
      refused,
    )
  })
})

describe('bad days', () => {
  it('keeps credentials over a crash of the server only where it persists them', async () => {
    const persistent = await bench.open({ persist: true })
    const kept = await persistent.issue(newRequest(['write']), never())
    const ended = await persistent.issue(newRequest(['write']), never())
    await persistent.revoke?.(ended.handle ?? {}, never())
    const lost = await issue('write')
    await bench.halt()
    await expect(revoke(kept.handle)).rejects.toMatchObject({ fault: 'unavailable' })
    await expect(issue('write')).rejects.toMatchObject({ fault: 'unavailable' })
    await bench.resume()
    const there = [kept, ended, lost].map(({ handle }) => isThere(handle?.['username']))
    expect(await Promise.all(there)).toEqual([true, false, false])
    await persistent.revoke?.(kept.handle ?? {}, never())
    await revoke(lost.handle)
    await revoke((await issue('write')).handle)
  })

  it('gives up on a server that hangs, and goes on when it is back', async () => {
    const { handle } = await issue('write')
    bench.freeze()
    await expect(backend.revoke?.(handle ?? {}, AbortSignal.timeout(200))).rejects.toMatchObject({
      fault: 'timeout',
    })
    bench.thaw()
    await revoke(handle)
    expect(await isThere(handle?.['username'])).toBe(false)
  })

  it('replaces its own password, both being valid in between, and repeats each step', async () => {
    await expect(backend.rotation?.propose(never())).rejects.toMatchObject({ fault: 'misconfigured' })
    const { rotation } = await bench.open({ persist: true })
    const next = (await rotation?.propose(never())) ?? {}
    await rotation?.adopt(next, never())
    await rotation?.adopt(next, never())
    expect(await (await bench.open()).check(never())).toEqual([])
    const renewed = await bench.open({ persist: true, ...next })
    await renewed.rotation?.finish?.({ password: 'change-me' }, never())
    await renewed.rotation?.finish?.({ password: 'change-me' }, never())
    await expect((await bench.open()).check(never())).rejects.toMatchObject({ fault: 'denied' })
    await bench.halt()
    await bench.resume()
    expect(await renewed.check(never())).toEqual([])
  })
})
