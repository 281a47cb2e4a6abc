import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createEgressFetch } from './egress.ts'
import { isPermitted, resolveChecked } from './egress-address.ts'
import { createResolver } from './resolver.ts'

const lookup = createResolver().addresses

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

async function serve(answer: RequestListener): Promise<number> {
  const server = createServer(answer)
  servers.push(server)
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

const FORBIDDEN = [
  '127.0.0.1',
  '127.255.255.254',
  '169.254.1.1',
  '::1',
  '0:0:0:0:0:0:0:1',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fdff::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '::ffff:0:127.0.0.1',
  '0000:0000:0000:0000:0000:ffff:7f00:0001',
  'fec0::1',
  'febf::1%25',
  '2002:a9fe:101::1',
  '64:ff9b::127.0.0.1',
  '2001:db8::5efe:127.0.0.1',
  '2001:db8::200:5efe:127.0.0.1',
]
const NEVER = [
  '169.254.169.254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '64:ff9b::a9fe:a9fe',
  '2002:a9fe:a9fe::',
  'fd00:ec2::254',
  '100.100.100.200',
  '0.0.0.0',
  '::',
  '::ffff:0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  'ff02::1',
  'nonsense',
  '',
  '168.63.129.16',
  '192.0.0.192',
  '169.254.170.2',
  '169.254.170.23',
  'fd00:ec2::23',
  'fd20:ce::254',
  'fd20:0ce:0:0:0:0:0:254',
  'fe80::a9fe:a9fe',
  'fe80::a9fe:a9fe%eth0',
  'fe80::5efe:169.254.169.254',
  'fe80::200:5efe:169.254.169.254',
  '2001:db8::5efe:168.63.129.16',
  '::ffff:168.63.129.16',
  '::169.254.170.23',
  '::ffff:0:169.254.170.23',
  '64:ff9b::192.0.0.192',
  '2002:a83f:8110::1',
  '64:ff9b:1::1',
  '64:ff9b:1::169.254.169.254',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001::1',
  '127.1',
  '0177.0.0.1',
  '2130706433',
  '2002:e000:1::',
]

describe('the addresses of upstreams', () => {
  it.each(FORBIDDEN)('permits %s only for backends marked local', (address) => {
    expect(isPermitted(address, false)).toBe(false)
    expect(isPermitted(address, true)).toBe(true)
  })

  it.each(NEVER)('permits %s for no backend', (address) => {
    expect(isPermitted(address, false)).toBe(false)
    expect(isPermitted(address, true)).toBe(false)
  })

  it.each([
    '8.8.8.8',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '2606:4700::1',
    '::ffff:10.0.0.1',
    '64:ff9b::808:808',
    '2001:db8::5efe:8.8.8.8',
    '2001:4860:4860::8888',
  ])('permits %s for every backend', (address) => {
    expect(isPermitted(address, false)).toBe(true)
  })

  it('resolves once, and refuses a name with one forbidden address', async () => {
    let asked = 0
    const lookup = async () => {
      asked += 1
      return ['8.8.8.8', '1.1.1.1']
    }
    expect(await resolveChecked('up.test', { local: false, lookup })).toBe('8.8.8.8')
    expect(asked).toBe(1)
    const mixed = async () => ['8.8.8.8', '127.0.0.1']
    await expect(resolveChecked('up.test', { local: false, lookup: mixed })).rejects.toMatchObject({
      fault: 'misconfigured',
    })
  })

  it.each(['127.0.0.1', '127.1', '2130706433', '0x7f.1', '[::1]', 'localhost'])(
    'refuses %s',
    async (name) => {
      await expect(resolveChecked(name, { local: false, lookup })).rejects.toMatchObject({
        fault: 'misconfigured',
      })
    },
  )

  it('reports a name without an address', async () => {
    const none = async () => []
    await expect(resolveChecked('x.test', { local: false, lookup: none })).rejects.toMatchObject({
      fault: 'unavailable',
    })
    await expect(resolveChecked('x.invalid', { local: false, lookup })).rejects.toMatchObject({
      fault: 'unavailable',
    })
  })
})

describe('fetch to upstreams', () => {
  const fetchLocal = createEgressFetch({ local: true, timeoutMs: 10_000, lookup })

  it('sends method, headers and body, and returns the reply', async () => {
    const port = await serve(async (request, response) => {
      const parts: Buffer[] = []
      for await (const part of request) parts.push(part as Buffer)
      const { method, url, headers } = request
      response.setHeader('set-cookie', ['a=1', 'b=2'])
      response.writeHead(201, 'Made', { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({ method, url, auth: headers.authorization, body: Buffer.concat(parts).toString() }),
      )
    })
    const reply = await fetchLocal(`http://127.0.0.1:${port}/a?b=c`, {
      method: 'PUT',
      headers: { authorization: 'Bearer x', host: 'other.test' },
      body: JSON.stringify({ é: 1 }),
    })
    expect(reply.status).toBe(201)
    expect(reply.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(await reply.json()).toEqual({ method: 'PUT', url: '/a?b=c', auth: 'Bearer x', body: '{"é":1}' })
  })

  it('connects to the checked address and keeps the name in Host', async () => {
    const port = await serve((request, response) => response.end(request.headers.host))
    let asked = 0
    const lookup = async () => {
      asked += 1
      // A second look would lead elsewhere.
      return [asked === 1 ? '127.0.0.1' : '203.0.113.1']
    }
    const reply = await createEgressFetch({ local: true, timeoutMs: 10_000, lookup })(
      `http://up.test:${port}/`,
    )
    expect(await reply.text()).toBe(`up.test:${port}`)
    expect(asked).toBe(1)
  })

  it('keeps a connection for the address that it has, and follows a name that moves', async () => {
    const visits: (string | undefined)[] = []
    const server = createServer((request, response) => {
      visits.push(`${request.socket.localAddress} ${request.socket.remotePort}`)
      response.end()
    })
    servers.push(server)
    await once(server.listen(0, '0.0.0.0'), 'listening')
    const { port } = server.address() as AddressInfo
    let address = '127.0.0.1'
    const follow = createEgressFetch({ local: true, timeoutMs: 10_000, lookup: async () => [address] })
    await follow(`http://up.test:${port}/`)
    await follow(`http://up.test:${port}/`)
    address = '127.0.0.2'
    await follow(`http://up.test:${port}/`)
    expect(visits.map((visit) => visit?.split(' ')[0])).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.2'])
    expect(visits[0]).toBe(visits[1])
  })

  it('refuses a reply that switches the protocol', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
      )
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await expect(fetchLocal(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({
      fault: 'unavailable',
      message: expect.stringContaining('switched to another protocol'),
    })
    server.close()
  })

  it('returns a reply without a body', async () => {
    const port = await serve((_, response) => response.writeHead(204).end())
    const reply = await fetchLocal(`http://127.0.0.1:${port}/`, { method: 'DELETE' })
    expect([reply.status, await reply.text()]).toEqual([204, ''])
  })

  it.each([301, 302, 303, 307, 308])('refuses the redirect %i', async (status) => {
    let visits = 0
    const port = await serve((_, response) => {
      visits += 1
      response.writeHead(status, { location: '/elsewhere' }).end()
    })
    await expect(fetchLocal(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ fault: 'misconfigured' })
    expect(visits).toBe(1)
  })

  it('refuses a reply over 256 KiB, however it is sent, and accepts one of exactly that size', async () => {
    const port = await serve((request, response) => {
      response.end(Buffer.alloc(262_144 + (request.url === '/more' ? 1 : 0)))
    })
    expect((await (await fetchLocal(`http://127.0.0.1:${port}/`)).arrayBuffer()).byteLength).toBe(262_144)
    await expect(fetchLocal(`http://127.0.0.1:${port}/more`)).rejects.toMatchObject({ fault: 'unavailable' })
    const endless = await serve((_, response) => {
      const more = () =>
        void (response.write(Buffer.alloc(16_384)) ? setImmediate(more) : response.once('drain', more))
      response.on('error', () => undefined)
      more()
    })
    await expect(fetchLocal(`http://127.0.0.1:${endless}/`)).rejects.toMatchObject({ fault: 'unavailable' })
  })

  it('refuses loopback unless local, compressed replies, and URLs that are not http', async () => {
    const port = await serve((_, response) => response.setHeader('content-encoding', 'gzip').end('x'))
    const url = `http://127.0.0.1:${port}/`
    await expect(createEgressFetch({ local: false, timeoutMs: 10_000, lookup })(url)).rejects.toMatchObject({
      fault: 'misconfigured',
    })
    await expect(fetchLocal(url)).rejects.toMatchObject({ fault: 'unavailable' })
    for (const bad of [
      'file:///etc/passwd',
      'ftp://x',
      '/relative',
      '',
      `http://user:pw@127.0.0.1:${port}/`,
    ]) {
      await expect(fetchLocal(bad)).rejects.toMatchObject({ fault: 'misconfigured' })
    }
  })

  it('stops with its caller, and reports a port without a listener', async () => {
    const abort = new AbortController()
    const port = await serve(() => abort.abort())
    await expect(fetchLocal(`http://127.0.0.1:${port}/`, { signal: abort.signal })).rejects.toMatchObject({
      fault: 'timeout',
    })
    await expect(fetchLocal('http://127.0.0.1:1/')).rejects.toMatchObject({ fault: 'unavailable' })
    const never = createEgressFetch({ local: true, timeoutMs: 10_000, lookup: () => new Promise(() => {}) })
    await expect(never('http://x.test/', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      fault: 'timeout',
    })
  })
})
