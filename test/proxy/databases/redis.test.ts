import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Redis, type RedisOptions } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NOBODY } from '../../support/listener-as.ts'
import {
  liveOf,
  openProxied,
  PLACEHOLDER,
  type ProxiedDatabase,
  type ProxiedOptions,
} from '../../support/proxied-database.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { run } from '../../support/run-program.ts'

let server: RedisServer
let proxied: ProxiedDatabase
const account = { username: 'mf_orders', password: randomBytes(32).toString('base64url'), database: '0' }

const open = (use: Partial<ProxiedOptions['use']> = {}, parts: Partial<ProxiedOptions> = {}) =>
  openProxied({ account, ...parts, use: { protocol: 'redis', port: server.port, ...use } })

beforeAll(async () => {
  server = await startRedis([])
  await server.call(
    'ACL',
    'SETUSER',
    account.username,
    'on',
    `>${account.password}`,
    '~*',
    '&*',
    '+@all',
    '-@admin',
    '+client|info',
  )
  proxied = await open()
})
afterAll(async () => {
  await proxied?.[Symbol.asyncDispose]()
  await server?.stop()
})

const SETTINGS = {
  retryStrategy: null,
  maxRetriesPerRequest: 0,
  enableReadyCheck: false,
  lazyConnect: true,
} satisfies RedisOptions
async function using<T>(work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(proxied.variables['REDIS_URL'] ?? '', SETTINGS)
  client.on('error', () => undefined)
  try {
    return await work(client)
  } finally {
    client.disconnect()
  }
}

const cli = (args: string[], stdin = '', env: Record<string, string> = {}) =>
  run(['redis-cli', ...args], { PATH: String(process.env['PATH']), ...proxied.variables, ...env }, { stdin })
const byUrl = () => ['-u', proxied.variables['REDIS_URL'] ?? '', '--no-auth-warning']

/** Sends these bytes as they are; resolves with all that came back once the other end has closed or `until` has arrived. */
async function raw(bytes: string | readonly string[], until?: string, path?: string): Promise<string> {
  const socket = path === undefined ? connect(proxied.tcpPort, '127.0.0.1') : connect(path)
  let said = ''
  const done = new Promise<void>((resolve) => {
    socket.on('data', (piece) => {
      said += piece.toString('latin1')
      if (until !== undefined && said.includes(until)) resolve()
    })
    socket.on('close', () => resolve())
    socket.on('error', () => resolve())
  })
  for (const piece of [bytes].flat()) {
    socket.write(piece, 'latin1')
    await new Promise((resolve) => setImmediate(resolve))
  }
  await done
  socket.destroy()
  return said
}

const request = (...parts: string[]) =>
  `*${parts.length}\r\n${parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join('')}`

describe('who a client is', () => {
  test('redis-cli with the address of its environment is the issued user', async () => {
    const { stdout, stderr, code } = await cli([...byUrl(), 'ACL', 'WHOAMI'])
    expect([code, stdout.trim(), stderr]).toEqual([0, account.username, ''])
    const socket = await run(['redis-cli', '-s', proxied.socket, 'ACL', 'WHOAMI'], {
      PATH: String(process.env['PATH']),
    })
    expect(socket.stdout.trim()).toBe(account.username)
  })

  test.each([2, 3])('RESP%i', async (version) => {
    const { stdout } = await cli([...byUrl(), `-${version}`, 'CLIENT', 'INFO'])
    expect(stdout).toContain(`resp=${version}`)
    expect(stdout).toContain(`user=${account.username}`)
  })

  test.each([
    [request('AUTH', PLACEHOLDER)],
    [request('AUTH', 'whoever', PLACEHOLDER)],
    [`AUTH ${PLACEHOLDER}\r\n`],
    [request('HELLO', '3', 'AUTH', 'default', PLACEHOLDER)],
    [request('hello', '3', 'setname', 'auth', 'auth', 'default', PLACEHOLDER)],
  ])('logs in with each form: %#', async (login) => {
    expect(await raw(login + request('ACL', 'WHOAMI'), account.username)).toContain(account.username)
  })

  test.each([
    [request('AUTH', 'wrong'), /^-WRONGPASS Mayfly: .*REDIS_URL|^-WRONGPASS Mayfly/],
    [request('AUTH', 'a', PLACEHOLDER.slice(1)), /^-WRONGPASS/],
    [request('HELLO', '3', 'AUTH', 'default', ''), /^-WRONGPASS/],
    [`${request('HELLO', '3')}QUIT\r\n`, /^-NOAUTH .*\r\n\+OK\r\n$/],
    [`${request('GET', 'a')}${request('AUTH', 'a', 'b', 'c')}QUIT\r\n`, /^(-NOAUTH .*\r\n){2}\+OK\r\n$/],
    ['POST / HTTP/1.1\r\nHost: x\r\n\r\n', /^-ERR .*HTTP/],
  ])('gets nothing without the placeholder: %#', async (bytes, expected) => {
    expect(await raw(bytes)).toMatch(expected)
  })

  test.runIf(process.getuid?.() === 0)('another user gets nothing from the port', async () => {
    const env = { ...process.env, ...proxied.variables }
    const child = spawn('redis-cli', [...byUrl(), 'PING'], { uid: NOBODY, gid: NOBODY, cwd: '/', env })
    let said = ''
    child.stdout.on('data', (bytes) => (said += String(bytes)))
    await once(child, 'close')
    expect(said).not.toContain('PONG')
    expect(proxied.warnings.join()).toContain('another user')
  })
})

describe('a login in the middle of a session', () => {
  test('is that of the issued user, in its turn, in whatever pieces it arrives', async () => {
    const session = [
      request('AUTH', PLACEHOLDER),
      request('SET', 'k', 'AUTH\r\n$5'),
      request('AUTH', 'someone', PLACEHOLDER),
      request('GET', 'k'),
      request('AUTH', 'root', 'root-password'),
      request('AUTH', 'nonsense'),
      request('HELLO', '3', 'AUTH', 'root', 'root-password'),
      request('HELLO', '2', 'AUTH', 'x', PLACEHOLDER, 'SETNAME', 'me'),
      'PING\r\n',
      `auth ${PLACEHOLDER}\r\n`,
      '\r\n*0\r\n',
      request('RESET'),
      request('ACL', 'WHOAMI'),
      request('QUIT'),
    ].join('')
    const expected = new RegExp(
      [
        String.raw`^\+OK\r\n\+OK\r\n\+OK\r\n\$8\r\nAUTH\r\n\$5\r\n-WRONGPASS .*\r\n-WRONGPASS .*\r\n-WRONGPASS .*\r\n`,
        String.raw`\*14\r\n[^]*\+PONG\r\n\+OK\r\n-ERR unknown command .MAYFLY-REFUSES-RESET[^\n]*\r\n`,
        String.raw`\$9\r\nmf_orders\r\n\+OK\r\n$`,
      ].join(''),
    )
    expect(await raw(session)).toMatch(expected)
    expect(await raw([...session])).toMatch(expected)
    for (let size = 2; size < 40; size += 7) {
      const pieces = session.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      expect(await raw(pieces)).toMatch(expected)
    }
  })

  test('never takes the placeholder to the server', async () => {
    const log = await seenByServer(
      [
        request('AUTH', PLACEHOLDER),
        request('AUTH', PLACEHOLDER, 'x'),
        request('AUTH', PLACEHOLDER, 'x', 'y'),
        request('HELLO', '3', 'AUTH', PLACEHOLDER),
        request('QUIT'),
      ].join(''),
    )
    expect(log).toContain(account.password)
    expect(log).not.toContain(PLACEHOLDER)
  })
})

/** What arrives at a server that answers everything with OK. */
async function seenByServer(bytes: string): Promise<string> {
  const { createServer } = await import('node:net')
  let seen = ''
  const fake = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (piece) => {
      seen += piece.toString('latin1')
      socket.write('+OK\r\n')
      if (seen.includes('QUIT')) socket.end()
    })
  }).listen(0, '127.0.0.1')
  await once(fake, 'listening')
  const { port } = fake.address() as { port: number }
  const one = await open({ port })
  const socket = connect(one.tcpPort, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(bytes, 'latin1')
  socket.resume()
  await once(socket, 'close')
  await one[Symbol.asyncDispose]()
  fake.close()
  return seen
}

describe('what goes through', () => {
  test('pipelines that begin with the login, transactions and scripts', async () => {
    await using(async (client) => {
      const results = await client
        .pipeline(Array.from({ length: 10_000 }, (_, n) => ['set', `n:${n}`, `${n}`]))
        .exec()
      expect(results?.every(([error, reply]) => error === null && reply === 'OK')).toBe(true)
      expect(await client.multi().incr('n:1').get('n:1').exec()).toEqual([
        [null, 2],
        [null, '2'],
      ])
      expect(await client.eval("return redis.call('get', KEYS[1])", 1, 'n:9999')).toBe('9999')
    })
  })

  test('100 MB in values, in both directions', async () => {
    await using(async (client) => {
      const value = randomBytes(10_485_760)
      for (let n = 0; n < 10; n += 1) await client.set(`big:${n}`, value)
      for (let n = 0; n < 10; n += 1) expect((await client.getBuffer(`big:${n}`))?.equals(value)).toBe(true)
      await client.flushall()
    })
    const lines = Array.from({ length: 20_000 }, (_, n) => request('SET', `p:${n}`, 'x'.repeat(500))).join('')
    const { stdout } = await cli([...byUrl(), '--pipe'], lines)
    expect(stdout).toContain('errors: 0, replies: 20000')
  })

  test('messages of channels, as RESP2 and pushed as RESP3', async () => {
    await using(async (subscriber) => {
      const heard = once(subscriber, 'message')
      await subscriber.subscribe('news')
      await using((client) => client.publish('news', 'hello'))
      expect(await heard).toEqual(['news', 'hello'])
    })
    const socket = raw(
      request('HELLO', '3', 'AUTH', 'x', PLACEHOLDER) +
        request('SUBSCRIBE', 'more') +
        request('PUBLISH', 'more', 'pushed'),
      'pushed\r\n',
    )
    expect(await socket).toMatch(/>3\r\n\$7\r\nmessage\r\n\$4\r\nmore\r\n\$6\r\npushed\r\n/)
  })

  test('a command that waits', async () => {
    await using(async (client) => {
      const waiting = client.blpop('queue', 60)
      await using((other) => other.rpush('queue', 'job'))
      expect(await waiting).toEqual(['queue', 'job'])
    })
  })

  test.each([
    ['*1\r\n$-1\r\n', 'a length that is none'],
    ['*1\r\n$03\r\nGET\r\n', 'a number that is none'],
    ['*+1\r\n', 'a number that is none'],
    ['*99999999\r\n', 'a number that is none'],
    ['*1\r\n$1000000000\r\n', 'a number that is none'],
    ['*1\r\n:3\r\n', 'an argument without a length'],
    ['*1\r$3\r\nGET\r\n', 'a line without an end'],
    [`*${'1'.repeat(100)}`, 'a number that is none'],
    ['GET "a"\r\n', 'a line with quotes'],
    [`*2\r\n$4\r\nAUTH\r\n$20000\r\n${'x'.repeat(20_000)}\r\n`, 'a login that is too long'],
    ['x'.repeat(70_000), 'a line that is too long'],
  ])('what the proxy does not understand ends the session: %#', async (bytes, message) => {
    const said = await raw(bytes, undefined, proxied.socket)
    expect(said).toMatch(/^-ERR Mayfly: /)
    expect(said).toContain(message)
  })
})

describe('the login upstream', () => {
  test('over TLS', async () => {
    await using2(await open({ tls: 'verify-full', ca: server.ca, port: server.tlsPort }), async (one) => {
      expect(await raw(request('ACL', 'WHOAMI'), account.username, one.socket)).toContain(account.username)
    })
    await using2(await open({ tls: 'require', port: server.tlsPort }), async (one) => {
      expect(await raw(request('ACL', 'WHOAMI'), account.username, one.socket)).toContain(account.username)
    })
  })

  test('is not begun where the certificate is of another authority', async () => {
    await using2(await open({ tls: 'verify-full', port: server.tlsPort }), async (one) => {
      const line = one.nextLine('refused')
      expect(await raw(request('PING'), undefined, one.socket)).toMatch(
        /^-ERR Mayfly: .*certificate that is not trusted/,
      )
      expect(await line).toMatchObject({ reason: 'upstream_tls', credentialId: 'cred_1' })
    })
  })

  test('that the server refuses is its own error', async () => {
    await using2(await open({}, { account: { ...account, password: 'wrong' } }), async (one) => {
      const line = one.nextLine('refused')
      expect(await raw(request('PING'), undefined, one.socket)).toMatch(/^-WRONGPASS/)
      expect(await line).toMatchObject({ reason: 'upstream_refused' })
    })
  })
})

async function using2(one: ProxiedDatabase, work: (one: ProxiedDatabase) => Promise<void>): Promise<void> {
  try {
    await work(one)
  } finally {
    await one[Symbol.asyncDispose]()
  }
}

describe('the credential', () => {
  test('that has ended, or is not there, is an error that says what to do', async () => {
    proxied.give({ state: 'ended', why: 'it was revoked.' })
    expect(await raw(request('AUTH', PLACEHOLDER))).toMatch(
      /^-NOAUTH Mayfly: .*it was revoked\. .*Begin a new run/,
    )
    proxied.give({ state: 'unsure', why: 'Mayfly does not answer.' })
    expect(await raw(request('AUTH', PLACEHOLDER))).toMatch(/^-TRYAGAIN Mayfly: .*Try again/)
    proxied.give(liveOf(account))
  })

  test('leaves one line for a session', async () => {
    const line = proxied.nextLine('injected')
    await using((client) => client.ping())
    expect(await line).toMatchObject({
      protocol: 'redis',
      authority: `127.0.0.1:${server.port}`,
      credentialId: 'cred_1',
    })
  })
})
