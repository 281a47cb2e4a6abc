import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startDnsServer } from '../../test/support/dns-server.ts'
import { createLookUp, type Found, NameNotFound } from './look-up.ts'
import { createResolver } from './resolver.ts'

interface Asked {
  readonly name: string
  readonly resolve: (found: Found) => void
  readonly reject: (error: unknown) => void
}

/** A resolver whose look-ups the test answers, on a clock that it sets. */
function controlled(most?: number) {
  const asked: Asked[] = []
  let time = 0
  const resolver = createResolver({
    now: () => time,
    ...(most === undefined ? {} : { most }),
    lookUp: (name) => {
      const { promise, resolve, reject } = Promise.withResolvers<Found>()
      asked.push({ name, resolve, reject })
      return promise
    },
  })
  return {
    resolver,
    asked,
    pass: (ms: number) => {
      time += ms
    },
    /** Answers the last look-up. */
    answer: (addresses: readonly string[], ttlMs = 10_000) => asked.at(-1)?.resolve({ addresses, ttlMs }),
    fail: (error: unknown) => asked.at(-1)?.reject(error),
  }
}

const silence = Object.assign(new Error('queryA ETIMEOUT'), { code: 'ETIMEOUT' })

describe('the resolver', () => {
  it('asks once for all that wait for the same name, and keeps the answer for its time', async () => {
    const { resolver, asked, answer, pass } = controlled()
    const waiting = ['db.test', 'DB.test', 'db.test'].map((name) => resolver.addresses(name))
    answer(['192.0.2.1'], 10_000)
    expect(await Promise.all(waiting)).toEqual([['192.0.2.1'], ['192.0.2.1'], ['192.0.2.1']])
    pass(9_999)
    expect(await resolver.addresses('db.test')).toEqual(['192.0.2.1'])
    expect(asked).toHaveLength(1)
    pass(1)
    const next = resolver.addresses('db.test')
    answer(['192.0.2.2'])
    expect(await next).toEqual(['192.0.2.2'])
    expect(asked).toHaveLength(2)
  })

  it.each([
    [0, 1_000],
    [86_400_000, 30_000],
  ])('keeps an answer of %i ms for %i ms', async (ttlMs, keptMs) => {
    const { resolver, asked, answer, pass } = controlled()
    const first = resolver.addresses('db.test')
    answer(['192.0.2.1'], ttlMs)
    await first
    pass(keptMs - 1)
    await resolver.addresses('db.test')
    expect(asked).toHaveLength(1)
    pass(1)
    const next = resolver.addresses('db.test')
    expect(asked).toHaveLength(2)
    answer(['192.0.2.2'])
    expect(await next).toEqual(['192.0.2.2'])
  })

  it('gives the last good addresses while the name server is silent, and asks again', async () => {
    const { resolver, asked, answer, fail, pass } = controlled()
    const first = resolver.addresses('db.test')
    answer(['192.0.2.1'])
    await first
    pass(3_600_000)
    // It waits shortly for a new answer, which does not come.
    expect(await resolver.addresses('db.test')).toEqual(['192.0.2.1'])
    expect(asked).toHaveLength(2)
    fail(silence)
    await delay(0)
    expect(await resolver.addresses('db.test')).toEqual(['192.0.2.1'])
    expect(asked).toHaveLength(2)
    pass(1_000)
    // The last look-up failed, so nobody waits for this one.
    const waiting = resolver.addresses('db.test')
    expect(asked).toHaveLength(3)
    expect(await waiting).toEqual(['192.0.2.1'])
    answer(['192.0.2.2'])
    await delay(0)
    expect(await resolver.addresses('db.test')).toEqual(['192.0.2.2'])
  })

  it('forgets the last addresses after a day of silence', async () => {
    const { resolver, answer, fail, pass } = controlled()
    const first = resolver.addresses('db.test')
    answer(['192.0.2.1'])
    await first
    pass(86_400_000)
    const late = resolver.addresses('db.test')
    fail(silence)
    await expect(late).rejects.toBe(silence)
  })

  it('gives no address of a name that is gone', async () => {
    const { resolver, answer, fail, pass, asked } = controlled()
    const first = resolver.addresses('db.test')
    answer(['192.0.2.1'])
    await first
    pass(10_000)
    const gone = resolver.addresses('db.test')
    fail(new NameNotFound('db.test'))
    await expect(gone).rejects.toBeInstanceOf(NameNotFound)
    await expect(resolver.addresses('db.test')).rejects.toBeInstanceOf(NameNotFound)
    expect(asked).toHaveLength(2)
    pass(1_000)
    const back = resolver.addresses('db.test')
    answer(['192.0.2.3'])
    expect(await back).toEqual(['192.0.2.3'])
  })

  it('bounds the names that it asks for at the same time', async () => {
    const { resolver, answer, asked } = controlled(2)
    const first = resolver.addresses('one.test')
    const second = resolver.addresses('two.test')
    await expect(resolver.addresses('three.test')).rejects.toThrow('too many names')
    const joined = resolver.addresses('two.test')
    answer(['192.0.2.2'])
    expect(await Promise.all([second, joined])).toEqual([['192.0.2.2'], ['192.0.2.2']])
    const third = resolver.addresses('three.test')
    answer(['192.0.2.3'])
    expect(await third).toEqual(['192.0.2.3'])
    asked[0]?.resolve({ addresses: ['192.0.2.1'], ttlMs: 0 })
    expect(await first).toEqual(['192.0.2.1'])
  })

  it('gives up on a name server that is silent, without a thread that waits for it', async () => {
    await using dns = await startDnsServer({ 'silent.test': 'silent', 'well.test': ['192.0.2.1'] })
    const { addresses } = createResolver({
      lookUp: createLookUp({ servers: [dns.address], read: async () => '' }),
    })
    const silent = Array.from({ length: 20 }, () => addresses('silent.test'))
    const many = Array.from({ length: 100 }, (_, n) => addresses(`well.test${'.'.repeat(n % 2)}`))
    for (const found of await Promise.all(many)) expect(found).toEqual(['192.0.2.1'])
    for (const outcome of await Promise.allSettled(silent)) expect(outcome.status).toBe('rejected')
    expect(dns.asked.filter((question) => question === 'silent.test A')).toHaveLength(2)
  })

  it('is the look-up of a connection', async () => {
    const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const { lookup } = createResolver({ lookUp: async () => ({ addresses: ['127.0.0.1'], ttlMs: 0 }) })
    const socket = connect({ port, host: 'db.test', lookup })
    await once(socket, 'connect')
    socket.destroy()
    const none = createResolver({ lookUp: () => Promise.reject(silence) })
    const [error] = await once(connect({ port, host: 'db.test', lookup: none.lookup }), 'error')
    expect(error).toMatchObject({ code: 'EAI_AGAIN', cause: silence })
    server.close()
  })
})
