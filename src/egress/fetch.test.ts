import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createEgressFetch } from './fetch.ts'
import { createResolver } from './resolver.ts'

const lookup = createResolver().addresses
const checkListener = async () => undefined

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

describe('fetch to upstreams', () => {
  const fetchLocal = createEgressFetch({ local: true, timeoutMs: 10_000, lookup, checkListener })

  it('says what program it is', async () => {
    const port = await serve((request, response) => response.end(request.headers['user-agent']))
    const reply = await fetchLocal(`http://127.0.0.1:${port}/`)
    expect(await reply.text()).toBe('mayfly')
  })

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
    const reply = await createEgressFetch({ local: true, timeoutMs: 10_000, lookup, checkListener })(
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
    const follow = createEgressFetch({
      local: true,
      timeoutMs: 10_000,
      lookup: async () => [address],
      checkListener,
    })
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
    await expect(
      createEgressFetch({ local: false, timeoutMs: 10_000, lookup, checkListener })(url),
    ).rejects.toMatchObject({
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
    const never = createEgressFetch({
      local: true,
      timeoutMs: 10_000,
      lookup: () => new Promise(() => {}),
      checkListener,
    })
    await expect(never('http://x.test/', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      fault: 'timeout',
    })
  })
})
