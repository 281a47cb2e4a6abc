import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createScram } from '../../../src/proxy/databases/postgres/scram.ts'
import type { ProxiedDatabase, ProxiedOptions } from '../../support/proxied-database.ts'
import { openPostgresWorld, type PostgresWorld } from '../../support/proxied-postgres.ts'

let world: PostgresWorld

beforeAll(async () => {
  world = await openPostgresWorld()
})
afterAll(async () => {
  await world?.close()
})

async function refusal(
  use: Partial<ProxiedOptions['use']>,
  parts: Partial<ProxiedOptions> = {},
): Promise<{ error: pg.DatabaseError; reason: string | null }> {
  await using proxied = await world.open(use, parts)
  const line = proxied.nextLine('refused')
  const error = await connected(proxied).then(
    () => {
      throw new Error('it was let in')
    },
    (thrown: pg.DatabaseError) => thrown,
  )
  return { error, reason: (await line).reason }
}

async function connected(proxied: ProxiedDatabase): Promise<{ method: string; ssl: boolean }> {
  const client = new pg.Client({ host: proxied.host, port: proxied.port, user: 'a', database: 'app' })
  client.on('error', () => undefined)
  await client.connect()
  const { rows } = await client.query(
    `SELECT ssl, (SELECT system_user) AS method FROM pg_stat_ssl WHERE pid = pg_backend_pid()`,
  )
  await client.end()
  return rows[0]
}

describe('TLS to the server', () => {
  test.each([
    ['disable', '127.0.0.1', false],
    ['require', '127.0.0.1', true],
    ['require', 'localhost', true],
    ['verify-full', 'localhost', true],
    ['verify-full', '127.0.0.1', true],
  ] as const)('%s to %s', async (tls, host, ssl) => {
    await using proxied = await world.open({ tls, host, ...(tls === 'verify-full' ? { ca: world.ca } : {}) })
    expect(await connected(proxied)).toMatchObject({ ssl, method: `scram-sha-256:${world.account.username}` })
  })

  test('of another authority, or with another name, is refused', async () => {
    const foreign = await refusal({ tls: 'verify-full', host: 'localhost' })
    expect(foreign.reason).toBe('upstream_tls')
    expect(foreign.error).toMatchObject({
      message: expect.stringContaining('certificate that is not trusted'),
      hint: expect.stringContaining('"ca" of the backend'),
    })
    const named = await refusal({ tls: 'verify-full', host: 'elsewhere.example', ca: world.ca })
    expect(named.reason).toBe('upstream_tls')
  })

  test('that the server does not offer, or that others could have written into, is refused', async () => {
    expect(await refusalBy((socket) => socket.write('N'), { tls: 'require' })).toBe('upstream_tls')
    expect(await refusalBy((socket) => socket.write('E'), { tls: 'require' })).toBe('upstream_tls')
    expect(await refusalBy((socket) => socket.write('SR\0\0\0\x08\0\0\0\0'), { tls: 'require' })).toMatch(
      /upstream_(protocol|tls)/,
    )
  })

  test('a request to cancel goes over it, too', async () => {
    await using proxied = await world.open({ tls: 'verify-full', host: 'localhost', ca: world.ca })
    const client = new pg.Client({ host: proxied.host, port: proxied.port, user: 'a', database: 'app' })
    await client.connect()
    const query = client.query('SELECT pg_sleep(600)')
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    const packet = Buffer.alloc(16)
    packet.writeInt32BE(16)
    packet.writeInt32BE((1234 << 16) | 5678, 4)
    packet.writeInt32BE(processID, 8)
    packet.writeInt32BE(secretKey, 12)
    const { connect } = await import('node:net')
    const socket = connect(proxied.socket)
    socket.end(packet)
    socket.resume()
    await expect(query).rejects.toMatchObject({ code: '57014' })
    await client.end()
  })
})

describe('the method of the login', () => {
  test('is bound to the channel where the server offers that', async () => {
    // The server refuses a client that could bind, and was kept from it.
    await using proxied = await world.open({ tls: 'require' })
    expect(await connected(proxied)).toMatchObject({ ssl: true })
    const mechanisms = ['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256']
    const certificate = new X509Certificate(world.ca).raw
    const scram = createScram({ password: 'x', mechanisms, certificate })
    expect([scram?.mechanism, scram?.first]).toEqual([
      mechanisms[0],
      expect.stringMatching(/^p=tls-server-end-point,,n=,r=/),
    ])
    expect(createScram({ password: 'x', mechanisms: mechanisms.slice(1), certificate })?.first).toMatch(
      /^y,,/,
    )
  })

  test.each(['password', 'md5'])('%s is used over verified TLS only', async (method) => {
    const { username, password } = world.account
    const md5 = `md5${createHash('md5').update(`${password}${username}`).digest('hex')}`
    if (method === 'md5') await world.root.query(`ALTER ROLE ${username} PASSWORD '${md5}'`)
    await world.askFor(method)
    try {
      await using verified = await world.open({ tls: 'verify-full', host: 'localhost', ca: world.ca })
      await expect
        .poll(() => connected(verified).then(({ method: used }) => used, String))
        .toBe(`${method}:${username}`)
      for (const tls of ['require', 'disable'] as const) {
        const { error, reason } = await refusal({ tls })
        expect(reason).toBe('upstream_login_method')
        expect(error).toMatchObject({ hint: expect.stringContaining('verify-full') })
      }
    } finally {
      await world.askFor()
      await world.root.query(`ALTER ROLE ${username} PASSWORD '${password}'`)
    }
  })

  test('that the proxy does not have is refused', async () => {
    const kerberos = Buffer.from('R\0\0\0\x08\0\0\0\x07', 'latin1')
    expect(await refusalBy((socket) => socket.write(kerberos))).toBe('upstream_login_method')
    const other = Buffer.from('R\0\0\0\x14\0\0\0\x0aSCRAM-SHA-1\0', 'latin1')
    expect(await refusalBy((socket) => socket.write(other))).toBe('upstream_login_method')
  })

  test('a server that does not know the password is not believed', async () => {
    const ask = Buffer.from('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0', 'latin1')
    const fine = Buffer.from('R\0\0\0\x08\0\0\0\0', 'latin1')
    expect(await refusalBy((socket) => socket.write(Buffer.concat([ask, fine])))).toBe('upstream_protocol')
    const final = Buffer.concat([
      Buffer.from('R\0\0\0\x36\0\0\0\x0c', 'latin1'),
      Buffer.from(`v=${'A'.repeat(43)}=`),
    ])
    expect(await refusalBy((socket) => socket.write(Buffer.concat([ask, final, fine])))).toBe(
      'upstream_protocol',
    )
  })

  test('a wrong password is the error of the server', async () => {
    const { error, reason } = await refusal({}, { account: { ...world.account, password: 'wrong' } })
    expect([error.code, reason]).toEqual(['28P01', 'upstream_refused'])
  })
})

describe('a server that', () => {
  test.each([
    [
      'sends endless messages',
      Buffer.concat([Buffer.from('R\x7f\xff\xff\xff', 'latin1'), Buffer.alloc(70_000)]),
    ],
    ['sends something else', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['sends a row', Buffer.from('D\0\0\0\x06\0\0', 'latin1')],
  ])('%s is not understood', async (_, bytes) => {
    expect(await refusalBy((socket) => socket.write(bytes))).toBe('upstream_protocol')
  })

  test('closes, is silent, or is not there, is unreachable or too slow', async () => {
    expect(await refusalBy((socket) => socket.destroy())).toBe('upstream_unreachable')
    expect(await refusalBy(() => undefined, {}, { times: { upstreamMs: 200 } })).toBe('upstream_timeout')
    const { error, reason } = await refusal({ port: 1 })
    expect(reason).toBe('upstream_unreachable')
    expect(error).toMatchObject({ code: '57P03', hint: expect.stringContaining('try again') })
  })

  test('has a forbidden address is never connected to', async () => {
    const addresses = (address: string) => ({ resolver: { addresses: async () => [address] } })
    const named = { host: 'db.example', port: world.server.port }
    for (const address of ['169.254.169.254', '100.100.100.200', '0.0.0.0']) {
      expect((await refusal(named, addresses(address))).reason).toBe('upstream_address')
    }
    expect((await refusal({ ...named, local: false }, addresses('127.0.0.1'))).reason).toBe(
      'upstream_address',
    )
    expect(
      (
        await refusal(
          { ...named, local: false },
          { resolver: { addresses: async () => ['192.0.2.1', '127.0.0.1'] } },
        )
      ).reason,
    ).toBe('upstream_address')
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::7f00:1']) {
      expect((await refusal(named, { ...addresses(address), isLocal: false })).reason).toBe(
        'upstream_address',
      )
    }
  })
})

/** The reason that is recorded when the server is this one. */
async function refusalBy(
  answer: (socket: Socket) => unknown,
  use: Partial<ProxiedOptions['use']> = {},
  parts: Partial<ProxiedOptions> = {},
): Promise<string | null> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => answer(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return (await refusal({ port: (server.address() as { port: number }).port, ...use }, parts)).reason
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}
