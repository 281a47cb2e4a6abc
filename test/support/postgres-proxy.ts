import { connect, createServer, type Server, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

export interface PostgresProxy {
  readonly port: number
  /** All that clients have sent, in clear. */
  sent(): string
  /** Lets somebody between speak to all clients that are connected. */
  interrupt(speak: (client: Socket) => void): void
  close(): Promise<void>
}

/** The reply to SSLRequest (PostgreSQL protocol, §55.2.10), whose message is 8 bytes with this code. */
const SSL_REQUEST = 80_877_103

/** Stands before a PostgreSQL server, ends TLS where a key is given, and keeps what clients say. Answers may be altered. */
export async function startPostgresProxy(
  upstream: { host: string; port: number },
  tls?: { key: string; cert: string },
  port = 0,
  alter: (answer: Buffer) => Buffer = (answer) => answer,
): Promise<PostgresProxy> {
  const said: Buffer[] = []
  const open = new Set<Socket>()
  const clients = new Set<Socket>()
  const server: Server = createServer((client) => {
    open.add(client)
    client.on('error', () => undefined)
    client.on('close', () => open.delete(client))
    if (tls === undefined) {
      join(client)
      return
    }
    client.once('data', (first) => {
      if (first.length !== 8 || first.readUInt32BE(4) !== SSL_REQUEST) {
        client.destroy()
        return
      }
      client.write('S')
      const secured = new TLSSocket(client, { isServer: true, ...tls })
      secured.on('error', () => client.destroy())
      join(secured)
    })
  })

  function join(client: Socket): void {
    const server = connect(upstream.port, upstream.host)
    open.add(server)
    clients.add(client)
    server.on('error', () => client.destroy())
    server.on('close', () => {
      open.delete(server)
      client.destroy()
    })
    client.on('close', () => {
      clients.delete(client)
      server.destroy()
    })
    client.on('data', (chunk) => {
      said.push(chunk)
      server.write(chunk)
    })
    server.on('data', (chunk) => client.write(alter(chunk)))
  }

  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, '127.0.0.1', resolve)
  await promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    sent: () => Buffer.concat(said).toString('latin1'),
    interrupt: (speak) => clients.forEach(speak),
    async close() {
      for (const socket of open) socket.destroy()
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      await closed.promise
    },
  }
}
