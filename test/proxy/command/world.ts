import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { createAuthority } from '../../../src/proxy/authority/authority.ts'
import { startWorld, type World } from '../../cli/support.ts'

/** What reached an upstream. */
export interface Arrived {
  readonly method: string
  readonly url: string
  readonly authorization: string
}

export interface Upstream {
  readonly port: number
  readonly origin: string
  readonly arrived: Arrived[]
  /** How many streams are open. */
  streams(): number
  close(): void
}

export interface ProxyWorld extends World {
  /** Over plain HTTP, as backend `gateway`. */
  readonly plain: Upstream
  /** Over TLS, as backend `secure`. */
  readonly secure: Upstream
}

/** A server with backends whose upstreams are here. */
export async function startProxyWorld(): Promise<ProxyWorld> {
  const world = await startWorld()
  const authority = createAuthority(Date.now)
  const [plain, secure] = await Promise.all([
    startUpstream((handle) => createServer(handle), 'http'),
    authority
      .leafFor('127.0.0.1')
      .then((leaf) => startUpstream((handle) => createSecureServer(leaf, handle), 'https')),
  ])
  await world.app.newBackend({
    name: 'gateway',
    max_ttl: '1h',
    default_ttl: '10m',
    uses: usesOf(plain.origin),
  })
  await world.app.newBackend({
    ...{ name: 'secure', max_ttl: '1h', default_ttl: '10m' },
    uses: usesOf(secure.origin, authority.certificate),
  })
  return {
    ...world,
    plain,
    secure,
    close: async () => {
      plain.close()
      secure.close()
      await world.close()
    },
  }
}

export function usesOf(origin: string, ca?: string) {
  return {
    uses: [
      {
        ...{ protocol: 'http', name: 'api', origin, local: true, ...(ca !== undefined && { ca }) },
        places: [{ in: 'header', name: 'authorization' }],
        allow: [{ methods: ['GET', 'POST'], path: '/v1/**' }],
        deny: [{ methods: ['*'], path: '/v1/keys/**' }],
      },
    ],
  }
}

export type Handle = (request: IncomingMessage, response: ServerResponse) => void

export async function startUpstream(create: (handle: Handle) => Server, scheme: string): Promise<Upstream> {
  const arrived: Arrived[] = []
  const open = new Set<ServerResponse>()
  const server = create((request, response) => {
    const { method = '', url = '', headers } = request
    const authorization = headers.authorization ?? ''
    arrived.push({ method, url, authorization })
    request.resume()
    if (!url.startsWith('/v1/stream')) {
      // As a careless upstream does.
      response.setHeader('content-type', 'application/json')
      return request.once('end', () => response.end(JSON.stringify({ url, echo: authorization })))
    }
    open.add(response)
    response.on('close', () => open.delete(response))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const timer = setInterval(() => response.write('data: tick\n\n'), 20)
    response.on('close', () => clearInterval(timer))
    return undefined
  })
  const sockets = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    arrived,
    origin: `${scheme}://127.0.0.1:${port}`,
    streams: () => open.size,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** What is in the file of `--write-env`. */
export async function environment(file: string): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(file, 'utf8')
  return new Map([...text.matchAll(/^(\w+)='?(.*?)'?$/gm)].map(([, name = '', value = '']) => [name, value]))
}
