import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql from 'mysql2/promise'
import { afterAll, describe, expect, test } from 'vitest'
import { methodOf } from '../../../src/proxy/databases/mysql/answers.ts'
import { startCachingServer } from '../../support/caching-sha2-server.ts'
import { makeCertificates } from '../../support/certificates.ts'
import { openProxied, type ProxiedDatabase, type ProxiedOptions } from '../../support/proxied-database.ts'

const account = { username: 'mf_orders', password: 'a-long-password-of-mysql-8', database: 'app' }
const directory = mkdtempSync(join(tmpdir(), 'mf-mysql-'))
const certificates = makeCertificates(directory)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const open = (use: Partial<ProxiedOptions['use']> & { port: number }, parts: Partial<ProxiedOptions> = {}) =>
  openProxied({ account, ...parts, use: { protocol: 'mysql', ...use } })
const logIn = async (proxied: ProxiedDatabase) => {
  const client = await mysql.createConnection({ socketPath: proxied.socket, user: 'a' })
  client.on('error', () => undefined)
  await client.ping()
  client.destroy()
}

describe('caching_sha2_password', () => {
  const TLS = { tls: 'verify-full', host: 'localhost', ca: certificates.server.ca } as const
  test.each([
    ['by the hash that the server knows', { isCached: true }, {}, 'fast'],
    ['by a key, on this machine', {}, {}, 'rsa'],
    ['by the password itself, over verified TLS', { tls: certificates.server }, TLS, 'tls'],
    ['by the password itself, over TLS', { tls: certificates.server }, { tls: 'require' } as const, 'tls'],
    ['by the hash, over TLS', { tls: certificates.server, isCached: true }, TLS, 'fast'],
    ['after a change of the method', { greets: 'mysql_native_password' }, {}, 'rsa'],
    ['after a change from an unknown method', { greets: 'authentication_ldap' }, {}, 'rsa'],
  ])('%s', async (_, settings, use, how) => {
    await using server = await startCachingServer({ password: account.password, ...settings })
    await using proxied = await open({ port: server.port, ...use })
    await logIn(proxied)
    expect(server.logins).toEqual([how])
    expect(server.inClear()).not.toContain(account.password)
  })

  test('shows the password to nobody in between', async () => {
    const method = methodOf('caching_sha2_password', { password: 'x', isEncrypted: false, isNear: false })
    await expect(method.next(Buffer.of(4))).rejects.toMatchObject({ code: 'upstream_login_method' })
    await expect(method.next(Buffer.of(5))).rejects.toMatchObject({ code: 'upstream_protocol' })
    for (const name of ['mysql_clear_password', 'sha256_password', 'dialog', '']) {
      expect(() => methodOf(name, { password: 'x', isEncrypted: true, isNear: true })).toThrow(
        'a login method',
      )
    }
  })

  test('with a wrong password is the error of the server', async () => {
    await using server = await startCachingServer({ password: 'another' })
    await using proxied = await open({ port: server.port })
    await expect(logIn(proxied)).rejects.toMatchObject({
      errno: 1045,
      message: expect.stringContaining('Access denied'),
    })
  })
})

describe('a server that', () => {
  const error = Buffer.from('\x17\0\0\0\xff\x10\x04Too many connections', 'latin1')
  const old = Buffer.from('\x05\0\0\0\x09abcd', 'latin1')
  test.each([
    ['is full says so itself', error, 'upstream_refused', /Too many connections/],
    ['speaks an older protocol', old, 'upstream_protocol', /another version/],
    [
      'sends something else',
      Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'upstream_protocol',
      /does not understand/,
    ],
    [
      'sends a packet of 16 MB',
      Buffer.concat([Buffer.of(0xff, 0xff, 0xff, 0), Buffer.alloc(100)]),
      'upstream_protocol',
      /16777215/,
    ],
    ['closes at once', Buffer.alloc(0), 'upstream_unreachable', /cannot be reached|try again/],
  ])('%s', async (_, bytes, reason, message) => {
    const fake = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.end(bytes)
    }).listen(0, '127.0.0.1')
    await once(fake, 'listening')
    await using proxied = await open({ port: (fake.address() as { port: number }).port })
    const line = proxied.nextLine('refused')
    await expect(logIn(proxied)).rejects.toThrow(message)
    expect((await line).reason).toBe(reason)
    fake.close()
  })

  test('is silent is given up', async () => {
    const sockets: Socket[] = []
    const fake = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
    await once(fake, 'listening')
    await using proxied = await open(
      { port: (fake.address() as { port: number }).port },
      { times: { upstreamMs: 200 } },
    )
    await expect(logIn(proxied)).rejects.toThrow('did not answer in time')
    for (const socket of sockets) socket.destroy()
    fake.close()
  })
})

describe('a child that', () => {
  test.each([
    ['answers with an endless packet', Buffer.concat([Buffer.of(0xff, 0xff, 0xff, 1), Buffer.alloc(100)])],
    ['answers with nothing', Buffer.of(0, 0, 0, 1)],
    ['answers in the words of before 4.1', Buffer.from('\x06\0\0\x01\x85\0\0\0\0\0', 'latin1')],
    ['ends a text nowhere', response(Buffer.from('root'))],
    ['answers with a longer answer than its packet', response(Buffer.from('root\0\xff', 'latin1'))],
    ['sends HTTP', Buffer.from('POST / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['sends a greeting of TLS', Buffer.from('16030100f8010000f40303', 'hex')],
  ])('%s is refused, also byte by byte', async (_, bytes) => {
    await using server = await startCachingServer({ password: account.password })
    await using proxied = await open({ port: server.port }, { times: { loginMs: 300 } })
    for (const pieces of [[bytes], [...bytes].map((byte) => Buffer.of(byte))]) {
      const line = proxied.nextLine()
      const socket = connect(proxied.socket)
      socket.on('error', () => undefined)
      let said = ''
      socket.on('data', (piece) => (said += piece.toString('latin1')))
      for (const piece of pieces) {
        socket.write(piece)
        await new Promise(setImmediate)
      }
      expect((await line).reason).toMatch(/bad_startup|login_timeout/)
      if (!socket.closed) await once(socket, 'close')
      expect(said).toContain('Mayfly: ')
      expect(server.logins).toEqual([])
    }
  })

  test('goes away before it logs in leaves nothing behind', async () => {
    await using server = await startCachingServer({ password: account.password })
    await using proxied = await open({ port: server.port })
    for (let n = 0; n < 50; n += 1) {
      const socket = connect(proxied.socket)
      await once(socket, 'data')
      socket.destroy()
    }
    await logIn(proxied)
    expect(server.logins).toHaveLength(1)
  })
})

function response(rest: Buffer): Buffer {
  const head = Buffer.alloc(36)
  head.writeUIntLE(32 + rest.length, 0, 3)
  head[3] = 1
  head.writeUInt32LE(0x0008a200, 4)
  return Buffer.concat([head, rest])
}
